# SMG_LIBFABRIC
# -------------
# The headers of libfabric 1.17 or later, for the fabric that runs over plain TCP. Sets LIBFABRIC_CFLAGS, HAVE_LIBFABRIC and
# SMG_LIBFABRIC_VERSION. The library itself is loaded at run time (emu/ofi_library.h): nothing links to it.
AC_DEFUN([SMG_LIBFABRIC], [
    SMG_DEP_ARG([libfabric], [libfabric transport of the emulator])
    AS_IF([test "x$smg_want_libfabric" != xno], [
        PKG_CHECK_MODULES([LIBFABRIC], [libfabric >= 1.17], [
            smg_save_CPPFLAGS=$CPPFLAGS
            CPPFLAGS="$CPPFLAGS $LIBFABRIC_CFLAGS"
            AC_CHECK_HEADER([rdma/fi_rma.h],
                [smg_have_libfabric=yes
                 smg_why_libfabric=`$PKG_CONFIG --modversion libfabric`],
                [smg_why_libfabric="rdma/fi_rma.h not found"])
            CPPFLAGS=$smg_save_CPPFLAGS
        ], [smg_why_libfabric="pkg-config knows no libfabric >= 1.17 (libfabric-dev)"])
    ])
    AS_IF([test "x$smg_have_libfabric" = xyes],
        [AC_DEFINE_UNQUOTED([SMG_LIBFABRIC_VERSION], ["$smg_why_libfabric"], [Version of the libfabric headers.])],
        [LIBFABRIC_CFLAGS=])
    SMG_DEP_DONE([libfabric], [HAVE_LIBFABRIC])
])

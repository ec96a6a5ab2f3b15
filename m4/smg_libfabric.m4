# SMG_LIBFABRIC
# -------------
# libfabric 1.17 or later, for the fabric that runs over plain TCP. Sets LIBFABRIC_CFLAGS, LIBFABRIC_LIBS and HAVE_LIBFABRIC.
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
    AS_IF([test "x$smg_have_libfabric" != xyes], [LIBFABRIC_CFLAGS= LIBFABRIC_LIBS=])
    SMG_DEP_DONE([libfabric], [HAVE_LIBFABRIC])
])

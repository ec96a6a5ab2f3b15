# SMG_SIMGRID
# -----------
# The C interface of SimGrid 3.32 or later. Sets SIMGRID_CFLAGS, SIMGRID_LIBS and HAVE_SIMGRID.
AC_DEFUN([SMG_SIMGRID], [
    SMG_DEP_ARG([simgrid], [SimGrid engine of the simulator])
    AS_IF([test "x$smg_want_simgrid" != xno], [
        PKG_CHECK_MODULES([SIMGRID], [simgrid >= 3.32], [
            smg_save_CPPFLAGS=$CPPFLAGS
            CPPFLAGS="$CPPFLAGS $SIMGRID_CFLAGS"
            AC_CHECK_HEADER([simgrid/engine.h],
                [smg_have_simgrid=yes
                 smg_why_simgrid=`$PKG_CONFIG --modversion simgrid`],
                [smg_why_simgrid="simgrid/engine.h does not compile as C"])
            CPPFLAGS=$smg_save_CPPFLAGS
        ], [smg_why_simgrid="pkg-config knows no simgrid >= 3.32 (libsimgrid-dev)"])
    ])
    AS_IF([test "x$smg_have_simgrid" = xyes],
        [AC_DEFINE_UNQUOTED([SMG_SIMGRID_VERSION], ["$smg_why_simgrid"], [Version of SimGrid at build time.])],
        [SIMGRID_CFLAGS= SIMGRID_LIBS=])
    SMG_DEP_DONE([simgrid], [HAVE_SIMGRID])
])

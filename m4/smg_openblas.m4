# SMG_OPENBLAS
# ------------
# OpenBLAS, with its cblas.h: what benchmarks compare with, and linear algebra done once, off line. No kernel needs it. Sets
# OPENBLAS_CFLAGS, OPENBLAS_LIBS and HAVE_OPENBLAS.
AC_DEFUN([SMG_OPENBLAS], [
    SMG_DEP_ARG([openblas], [OpenBLAS, for benchmarks of kernels])
    AS_IF([test "x$smg_want_openblas" != xno], [
        PKG_CHECK_MODULES([OPENBLAS], [openblas >= 0.3], [
            smg_save_CFLAGS=$CFLAGS
            smg_save_LIBS=$LIBS
            CFLAGS="$CFLAGS $OPENBLAS_CFLAGS"
            LIBS="$OPENBLAS_LIBS $LIBS"
            AC_MSG_CHECKING([whether OpenBLAS links])
            AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cblas.h>]], [[openblas_set_num_threads(1);]])],
                [AC_MSG_RESULT([yes])
                 smg_have_openblas=yes
                 smg_why_openblas=`$PKG_CONFIG --modversion openblas`],
                [AC_MSG_RESULT([no])
                 smg_why_openblas="a program with cblas.h does not link"])
            CFLAGS=$smg_save_CFLAGS
            LIBS=$smg_save_LIBS
        ], [smg_why_openblas="pkg-config knows no openblas >= 0.3 (libopenblas-dev)"])
    ])
    AS_IF([test "x$smg_have_openblas" != xyes], [OPENBLAS_CFLAGS= OPENBLAS_LIBS=])
    SMG_DEP_DONE([openblas], [HAVE_OPENBLAS])
])

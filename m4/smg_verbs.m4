# SMG_VERBS
# ---------
# libibverbs. Sets VERBS_LIBS and HAVE_VERBS; HAVE_IBV_REG_DMABUF_MR where memory of a GPU can be registered through a dma-buf.
# A device is not needed to build: it is looked for at run time.
AC_DEFUN([SMG_VERBS], [
    SMG_DEP_ARG([verbs], [InfiniBand verbs transport of the emulator])
    VERBS_LIBS=
    AS_IF([test "x$smg_want_verbs" != xno], [
        smg_save_LIBS=$LIBS
        AC_CHECK_HEADER([infiniband/verbs.h],
            [AC_CHECK_LIB([ibverbs], [ibv_get_device_list],
                [VERBS_LIBS=-libverbs
                 smg_have_verbs=yes
                 smg_why_verbs="libibverbs"
                 LIBS="$VERBS_LIBS $LIBS"
                 AC_CHECK_FUNC([ibv_reg_dmabuf_mr],
                    [AC_DEFINE([HAVE_IBV_REG_DMABUF_MR], [1], [Define to 1 when libibverbs has ibv_reg_dmabuf_mr.])
                     smg_why_verbs="libibverbs with dma-buf registration"])],
                [smg_why_verbs="libibverbs does not link (libibverbs-dev)"])],
            [smg_why_verbs="infiniband/verbs.h not found (libibverbs-dev)"])
        LIBS=$smg_save_LIBS
    ])
    AC_SUBST([VERBS_LIBS])
    SMG_DEP_DONE([verbs], [HAVE_VERBS])
])

# SMG_CUDA
# --------
# A CUDA toolkit: nvcc that runs, and its cuda_runtime.h. Looked for in --with-cuda=DIR, $CUDA_HOME, PATH, /usr/local/cuda. Sets
# NVCC, CUDA_CPPFLAGS and HAVE_CUDA. A GPU is not needed to build.
AC_DEFUN([SMG_CUDA], [
    AC_ARG_VAR([CUDA_HOME], [folder of the CUDA toolkit])
    SMG_DEP_ARG([cuda], [CUDA toolkit, or the folder it is in])
    NVCC= CUDA_CPPFLAGS=
    AS_IF([test "x$smg_want_cuda" != xno], [
        AS_CASE([$smg_want_cuda],
            [yes|auto], [smg_cuda_path="${CUDA_HOME:+$CUDA_HOME/bin:}$PATH:/usr/local/cuda/bin"],
            [smg_cuda_path="$smg_want_cuda/bin"])
        AC_PATH_PROG([NVCC], [nvcc], [], [$smg_cuda_path])
        AS_IF([test "x$NVCC" = x],
                  [smg_why_cuda="no nvcc in CUDA_HOME, PATH or /usr/local/cuda"],
              [smg_cuda_version=`$NVCC --version 2>/dev/null | sed -n 's/.*release \(@<:@0-9.@:>@*\).*/\1/p'`
               test "x$smg_cuda_version" = x],
                  [smg_why_cuda="$NVCC does not run"],
              [smg_cuda_root=`AS_DIRNAME(["$NVCC"])`/..
               smg_cuda_root=`cd "$smg_cuda_root" && pwd -P`
               test -f "$smg_cuda_root/include/cuda_runtime.h"],
                  [smg_have_cuda=yes
                   smg_why_cuda="nvcc $smg_cuda_version"
                   CUDA_CPPFLAGS="-I$smg_cuda_root/include"],
              [test -f /usr/include/cuda_runtime.h],
                  [smg_have_cuda=yes
                   smg_why_cuda="nvcc $smg_cuda_version"],
              [smg_why_cuda="nvcc $smg_cuda_version runs, but cuda_runtime.h is not in $smg_cuda_root/include"])
    ])
    AS_IF([test "x$smg_have_cuda" = xyes], [AC_DEFINE_UNQUOTED([SMG_CUDA_VERSION], ["$smg_cuda_version"], [Version of nvcc.])])
    AC_SUBST([CUDA_CPPFLAGS])
    SMG_DEP_DONE([cuda], [HAVE_CUDA])
])

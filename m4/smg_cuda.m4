# SMG_CUDA
# --------
# A CUDA toolkit: nvcc that runs, and its cuda_runtime.h. Looked for in --with-cuda=DIR, $CUDA_HOME, PATH, /usr/local/cuda. Sets
# NVCC, CUDA_CPPFLAGS, CUDART_LIBS (the runtime as a static library), CUDA_ARCH, CUDA_GENCODE and HAVE_CUDA. A GPU is not needed
# to build.
AC_DEFUN([SMG_CUDA], [
    AC_ARG_VAR([CUDA_HOME], [folder of the CUDA toolkit])
    AC_ARG_VAR([NVCCFLAGS], [further flags for nvcc])
    SMG_DEP_ARG([cuda], [CUDA toolkit, or the folder it is in])
    AC_ARG_WITH([cuda-arch],
        [AS_HELP_STRING([--with-cuda-arch=LIST],
            [GPU architectures that kernels are compiled for, e.g. "80 90" @<:@code that every GPU since 7.5 compiles at its first use@:>@])],
        [CUDA_ARCH=`AS_ECHO(["$withval"]) | tr ',' ' '`], [CUDA_ARCH=])
    NVCC= CUDA_CPPFLAGS= CUDART_LIBS= CUDA_GENCODE= smg_have_cuda_headers=no
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
               SMG_CUDA_HEADERS([$smg_cuda_root/include])
               test "x$smg_have_cuda_headers" = xno],
                  [smg_why_cuda="nvcc $smg_cuda_version runs, but cuda_runtime.h is not in $smg_cuda_root/include"],
              [SMG_CUDART([$smg_cuda_root])
               test "x$CUDART_LIBS" = x],
                  [smg_why_cuda="nvcc $smg_cuda_version runs, but libcudart_static.a does not link"],
              [smg_have_cuda=yes
               smg_why_cuda="nvcc $smg_cuda_version, for ${CUDA_ARCH:-every GPU since 7.5}"])
        # Headers alone are enough to run the kernels on the CPU.
        AS_IF([test "x$smg_have_cuda_headers" = xno], [SMG_CUDA_HEADERS([${CUDA_HOME:-/usr/local/cuda}/include])])
        # One architecture as PTX: the driver compiles it for any later GPU. Five of them take five times as long to build.
        AS_IF([test "x$CUDA_ARCH" = x], [CUDA_GENCODE="-gencode arch=compute_75,code=compute_75"])
        for smg_arch in $CUDA_ARCH; do
            CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$smg_arch,code=sm_$smg_arch"
        done
    ])
    AS_IF([test "x$smg_have_cuda" = xyes], [AC_DEFINE_UNQUOTED([SMG_CUDA_VERSION], ["$smg_cuda_version"], [Version of nvcc.])])
    AC_SUBST([CUDA_CPPFLAGS])
    AC_SUBST([CUDART_LIBS])
    AC_SUBST([CUDA_ARCH])
    AC_SUBST([CUDA_GENCODE])
    SMG_DEP_DONE([cuda], [HAVE_CUDA])
])

# SMG_CUDA_HEADERS(FOLDER)
# ------------------------
# CUDA's headers, in FOLDER or where the compiler looks. Sets smg_have_cuda_headers and CUDA_CPPFLAGS.
AC_DEFUN([SMG_CUDA_HEADERS], [
    AS_IF([test -f "$1/cuda_runtime.h"], [smg_have_cuda_headers=yes CUDA_CPPFLAGS="-isystem $1"],
          [test -f /usr/include/cuda_runtime.h], [smg_have_cuda_headers=yes])
])

# SMG_CUDART(FOLDER)
# ------------------
# The CUDA runtime as a static library, so that programs start where there is none. Sets CUDART_LIBS when it links.
AC_DEFUN([SMG_CUDART], [
    AS_IF([test -f "$1/lib64/libcudart_static.a"], [smg_cudart_libs="-L$1/lib64"], [smg_cudart_libs="-L$1/lib"])
    smg_cudart_libs="$smg_cudart_libs -lcudart_static -lrt -lpthread -ldl"
    smg_save_LIBS=$LIBS
    LIBS="$smg_cudart_libs $LIBS"
    AC_MSG_CHECKING([for the static CUDA runtime])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[int cudaGetDeviceCount(int *n);]], [[int n; return cudaGetDeviceCount(&n);]])],
        [AC_MSG_RESULT([yes])
         CUDART_LIBS=$smg_cudart_libs],
        [AC_MSG_RESULT([no])])
    LIBS=$smg_save_LIBS
])

# SMG_CUDA_RUNNER
# ---------------
# What the CPU runner of the CUDA sources needs: CUDA's headers and a C++17 compiler that takes them. Comes behind SMG_CUDA and
# SMG_SANITIZERS. Sets HAVE_CUDA_RUNNER, RUNNER_WARN_CXXFLAGS, RUNNER_SAN_CFLAGS, smg_have_runner and smg_why_runner.
AC_DEFUN([SMG_CUDA_RUNNER], [
    smg_have_runner=no
    AS_IF([test "x$smg_have_cuda_headers" = xno], [smg_why_runner="no CUDA headers"], [
        AC_LANG_PUSH([C++])
        smg_save_CXXFLAGS=$CXXFLAGS
        smg_save_CPPFLAGS=$CPPFLAGS
        CXXFLAGS="$CXXFLAGS -std=c++17"
        CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
        AC_MSG_CHECKING([whether $CXX compiles CUDA's headers])
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
                #include <cuda_runtime.h>
                #include <cuda_fp16.h>
                static_assert(sizeof(dim3) == 12, "C++17");]])],
            [AC_MSG_RESULT([yes])
             smg_have_runner=yes
             smg_why_runner=$CXX],
            [AC_MSG_RESULT([no])
             smg_why_runner="no C++17 compiler that takes the headers of CUDA (g++)"])
        CXXFLAGS=$smg_save_CXXFLAGS
        CPPFLAGS=$smg_save_CPPFLAGS
        AC_LANG_POP([C++])
    ])
    RUNNER_WARN_CXXFLAGS="-Wall -Wextra -Wpedantic"
    AS_IF([test "x$enable_werror" != xno], [RUNNER_WARN_CXXFLAGS="$RUNNER_WARN_CXXFLAGS -Werror"])
    AC_SUBST([RUNNER_WARN_CXXFLAGS])
    RUNNER_SAN_CFLAGS=$SAN_CFLAGS
    AS_CASE([,$enable_sanitizers,], [*,thread,*], [RUNNER_SAN_CFLAGS=])
    AC_SUBST([RUNNER_SAN_CFLAGS])
    AC_SUBST([HAVE_RUNNER], [$smg_have_runner])
    AC_SUBST([WHY_RUNNER], [$smg_why_runner])
    AM_CONDITIONAL([HAVE_CUDA_RUNNER], [test "x$smg_have_runner" = xyes])
])

# SMG_FUZZING
# -----------
# --enable-fuzzing: everything is compiled for libFuzzer, with the address and undefined sanitizers; needs clang. Comes behind
# SMG_SANITIZERS. Sets SAN_CFLAGS, FUZZ_LDFLAGS (the fuzzer itself, for its targets) and the conditional FUZZING.
AC_DEFUN([SMG_FUZZING], [
    AC_ARG_ENABLE([fuzzing],
        [AS_HELP_STRING([--enable-fuzzing], [for make fuzz: libFuzzer, address and undefined sanitizers; needs CC=clang])],
        [], [enable_fuzzing=no])
    FUZZ_LDFLAGS=
    AS_IF([test "x$enable_fuzzing" != xno], [
        AS_IF([test "x$enable_sanitizers" != xno],
            [AC_MSG_ERROR([--enable-fuzzing brings its own sanitizers: leave --enable-sanitizers out])])
        smg_fuzz_flags="address,undefined,float-cast-overflow"
        SAN_CFLAGS="-fsanitize=fuzzer-no-link,$smg_fuzz_flags -fno-sanitize-recover=undefined,float-cast-overflow -fno-omit-frame-pointer"
        FUZZ_LDFLAGS="-fsanitize=fuzzer,$smg_fuzz_flags"
        AC_MSG_CHECKING([whether $CC links fuzz targets])
        smg_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS $SAN_CFLAGS $FUZZ_LDFLAGS"
        AC_LINK_IFELSE([AC_LANG_SOURCE([[
                #include <stddef.h>
                int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);
                int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes) { return bytes && data[0] == 'x' ? -1 : 0; }]])],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([--enable-fuzzing: $CC has no libFuzzer; use CC=clang, with libclang-rt-dev installed])])
        CFLAGS=$smg_save_CFLAGS
        enable_sanitizers=$smg_fuzz_flags
    ])
    AC_SUBST([FUZZ_LDFLAGS])
    AM_CONDITIONAL([FUZZING], [test "x$enable_fuzzing" != xno])
])

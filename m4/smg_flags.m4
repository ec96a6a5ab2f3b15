# SMG_TRY_FLAGS(VARIABLE, FLAGS)
# ------------------------------
# Appends each of FLAGS that the compiler takes (also when it links) to VARIABLE.
AC_DEFUN([SMG_TRY_FLAGS], [
    for smg_flag in $2; do
        AC_MSG_CHECKING([whether $CC takes $smg_flag])
        smg_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS -Werror $smg_flag"
        AC_LINK_IFELSE([AC_LANG_PROGRAM()],
            [AC_MSG_RESULT([yes])
             $1="$$1 $smg_flag"],
            [AC_MSG_RESULT([no])])
        CFLAGS=$smg_save_CFLAGS
    done
])

# SMG_SANITIZERS
# --------------
# --enable-sanitizers=LIST with words address, undefined, thread, leak. Sets SAN_CFLAGS, for compiling and linking alike.
AC_DEFUN([SMG_SANITIZERS], [
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers=LIST], [comma-separated: address, undefined, leak, or thread @<:@none@:>@])],
        [], [enable_sanitizers=no])
    SAN_CFLAGS=
    AS_IF([test "x$enable_sanitizers" = xyes],
        [AC_MSG_ERROR([--enable-sanitizers needs a list, for example --enable-sanitizers=address,undefined])])
    AS_IF([test "x$enable_sanitizers" != xno], [
        for smg_word in `AS_ECHO(["$enable_sanitizers"]) | tr , ' '`; do
            AS_CASE([$smg_word],
                [address|undefined|leak|thread], [],
                [AC_MSG_ERROR([--enable-sanitizers: '$smg_word' is none of address, undefined, leak, thread])])
        done
        SAN_CFLAGS="-fsanitize=$enable_sanitizers -fno-omit-frame-pointer"
        AS_CASE([,$enable_sanitizers,], [*,undefined,*], [SAN_CFLAGS="$SAN_CFLAGS -fno-sanitize-recover=undefined"])
        AC_MSG_CHECKING([whether $CC links with $SAN_CFLAGS])
        smg_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS $SAN_CFLAGS"
        AC_LINK_IFELSE([AC_LANG_PROGRAM()],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([$CC cannot build with -fsanitize=$enable_sanitizers])])
        CFLAGS=$smg_save_CFLAGS
        # gcc warns that the thread sanitizer does not model fences; it then sees less, and that is all.
        AS_CASE([,$enable_sanitizers,], [*,thread,*], [SMG_TRY_FLAGS([SAN_CFLAGS], [-Wno-tsan])])
    ])
    AC_SUBST([SAN_CFLAGS])
])

# SMG_DEP_ARG(NAME, HELP)
# -----------------------
# Adds --with-NAME, with the values auto (default), yes, no, and sets smg_want_NAME. What stands behind the dependency then sets
# smg_have_NAME to yes or no and smg_why_NAME to one clause for the table at the end of configure.
AC_DEFUN([SMG_DEP_ARG], [
    AC_ARG_WITH([$1],
        [AS_HELP_STRING([--with-$1], [$2 @<:@auto@:>@])],
        [smg_want_$1=$withval], [smg_want_$1=auto])
    smg_have_$1=no
    smg_why_$1="switched off"
])

# SMG_DEP_DONE(NAME, MACRO)
# -------------------------
# An explicit request that failed is an error, a default that failed is a notice; defines MACRO for C and for automake.
AC_DEFUN([SMG_DEP_DONE], [
    AS_IF([test "x$smg_have_$1" = xyes],
              [AC_DEFINE([$2], [1], [Define to 1 when built with $1.])],
          [test "x$smg_want_$1" = xauto],
              [AC_MSG_NOTICE([building without $1: $smg_why_$1])],
          [test "x$smg_want_$1" != xno],
              [AC_MSG_ERROR([--with-$1 was asked for: $smg_why_$1])])
    AM_CONDITIONAL([$2], [test "x$smg_have_$1" = xyes])
])

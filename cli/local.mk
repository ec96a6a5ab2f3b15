# The program.
bin_PROGRAMS += smartgen
smartgen_CPPFLAGS = $(SMG_CPPFLAGS) $(SMG_DATA_CPPFLAGS) $(JANSSON_CFLAGS) $(VERBS_CFLAGS)
smartgen_LDADD = libsmgall.la
# Plug-ins find the interface in the program.
smartgen_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
smartgen_SOURCES = \
	cli/cli.h \
	cli/cmd_files.c \
	cli/cmd_info.c \
	cli/cmd_plan.c \
	cli/cmd_profile.c \
	cli/cmd_run.c \
	cli/interrupt.c \
	cli/interrupt.h \
	cli/main.c \
	cli/options.c \
	cli/plan_words.c \
	cli/plan_words.h \
	cli/smartgen.h

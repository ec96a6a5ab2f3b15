# The program.
bin_PROGRAMS += smartgen
smartgen_CPPFLAGS = $(SMG_CPPFLAGS) $(SMG_DATA_CPPFLAGS) $(JANSSON_CFLAGS) $(VERBS_CFLAGS)
smartgen_LDADD = libsmgall.la
# Plug-ins find the interface in the program.
smartgen_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
smartgen_SOURCES = \
	cli/choices.c \
	cli/cli.h \
	cli/cmd_compare.c \
	cli/cmd_doctor.c \
	cli/cmd_emu.c \
	cli/cmd_files.c \
	cli/cmd_info.c \
	cli/cmd_kernels.c \
	cli/cmd_kernels.h \
	cli/cmd_plan.c \
	cli/cmd_profile.c \
	cli/cmd_sim.c \
	cli/completion.c \
	cli/completion_zsh.c \
	cli/emu_bench.c \
	cli/emu_measure.c \
	cli/emu_measure.h \
	cli/emu_role.c \
	cli/emu_role.h \
	cli/help.c \
	cli/interrupt.c \
	cli/interrupt.h \
	cli/kernels_measure.c \
	cli/kernels_measure.h \
	cli/kernels_measure_files.c \
	cli/kernels_measure_values.c \
	cli/main.c \
	cli/man.c \
	cli/options.c \
	cli/outcome.c \
	cli/outcome.h \
	cli/output_file.c \
	cli/output_file.h \
	cli/plan_words.c \
	cli/plan_words.h \
	cli/progress.c \
	cli/progress.h \
	cli/run_folder.c \
	cli/run_folder.h \
	cli/scenario.c \
	cli/smartgen.h \
	cli/words.c

# ---- Manual page and completion, made by the program itself from its tables; not when it cannot run here ----
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
man1_MANS =
nodist_bashcompletion_DATA =
nodist_zshcompletion_DATA =
if !SMG_CROSS_COMPILING
man1_MANS += smartgen.1
nodist_bashcompletion_DATA += completion/smartgen
nodist_zshcompletion_DATA += completion/_smartgen
endif
CLEANFILES += smartgen.1 completion/smartgen completion/_smartgen

SMG_MAKE_TEXT = $(AM_V_GEN)$(MKDIR_P) $(@D) && rm -f $@ $@.new && ./smartgen$(EXEEXT)
smartgen.1: smartgen$(EXEEXT)
	$(SMG_MAKE_TEXT) man >$@.new && mv $@.new $@
completion/smartgen: smartgen$(EXEEXT)
	$(SMG_MAKE_TEXT) completion bash >$@.new && mv $@.new $@
completion/_smartgen: smartgen$(EXEEXT)
	$(SMG_MAKE_TEXT) completion zsh >$@.new && mv $@.new $@

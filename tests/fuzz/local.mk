# Fuzz targets: tests/fuzz/fuzz_NAME.c is two lines here, a corpus of small files in tests/fuzz/corpus/NAME, and a dictionary
# tests/fuzz/NAME.dict where words help. Without --enable-fuzzing they replay their corpus as tests.
SMG_FUZZ_TARGETS =
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_agents
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_event_log
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_expression
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_generator
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_hardware
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_hello
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_importance
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_lengths
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_model_config
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_records_csv
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_recording
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_run_json
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_scenario
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_set
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_sweep
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_trace_csv
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_trace_jsonl
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_validation
SMG_FUZZ_TARGETS += tests/fuzz/fuzz_wire

tests_fuzz_fuzz_agents_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_event_log_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_expression_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_generator_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_hardware_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_hello_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_importance_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_lengths_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_model_config_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_records_csv_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_recording_LDFLAGS = $(SMG_FUZZ_LINK) -Wl,--wrap=mmap,--wrap=munmap
tests_fuzz_fuzz_run_json_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_scenario_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_set_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_sweep_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_trace_csv_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_trace_jsonl_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_validation_LDFLAGS = $(SMG_FUZZ_LINK)
tests_fuzz_fuzz_wire_LDFLAGS = $(SMG_FUZZ_LINK)

check_PROGRAMS += $(SMG_FUZZ_TARGETS)
SMG_FUZZ_LINK = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

# libsmgfuzz.la has main() where the fuzzer does not bring it.
check_LTLIBRARIES += libsmgfuzz.la
libsmgfuzz_la_SOURCES = \
	tests/fuzz/fuzz.c \
	tests/fuzz/fuzz.h \
	tests/fuzz/scenario.h \
	tests/fuzz/sealed.h \
	tests/fuzz/trace.h \
	tests/fuzz/world.h

# ---- make fuzz: every target for FUZZ_SECONDS, FUZZ_JOBS at a time; FUZZ_ONLY names some (make fuzz FUZZ_ONLY="set sweep") ----
FUZZ_SECONDS = 60
FUZZ_JOBS = 2
FUZZ_ONLY =

fuzz-targets: $(SMG_FUZZ_TARGETS)

if FUZZING
fuzz: $(SMG_FUZZ_TARGETS)
	@$(AM_TESTS_ENVIRONMENT) $(BASH) $(srcdir)/tests/fuzz/run.sh tests/fuzz "$(FUZZ_SECONDS)" "$(FUZZ_JOBS)" "$(FUZZ_ONLY)" $(SMG_FUZZ_TARGETS)
else
libsmgfuzz_la_SOURCES += tests/fuzz/main.c
TESTS += $(SMG_FUZZ_TARGETS)
fuzz:
	@echo "make fuzz needs a build of its own: configure with CC=clang --enable-fuzzing" >&2; exit 1
endif

clean-local: clean-fuzz
clean-fuzz:
	rm -rf tests/fuzz/work

.PHONY: fuzz fuzz-targets clean-fuzz

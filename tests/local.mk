# Tests. One cmocka program per file tests/test_NAME.c: adding one is one line here. A test that cannot run here prints one line
# "skip: REASON" and exits with 77.
SMG_UNIT_TESTS =
SMG_UNIT_TESTS += tests/test_kernels_attend
SMG_UNIT_TESTS += tests/test_kernels_attend_values
SMG_UNIT_TESTS += tests/test_kernels_importance
SMG_UNIT_TESTS += tests/test_kernels_move
SMG_UNIT_TESTS += tests/test_kernels_split
SMG_UNIT_TESTS += tests/test_kernels_topk
SMG_UNIT_TESTS += tests/test_kernels_hash
SMG_UNIT_TESTS += tests/test_kernels_offline
SMG_UNIT_TESTS += tests/test_kernels_page
SMG_UNIT_TESTS += tests/test_kernels_planted
SMG_UNIT_TESTS += tests/test_kernels_quality
SMG_UNIT_TESTS += tests/test_kernels_query
SMG_UNIT_TESTS += tests/test_kernels_scores
SMG_UNIT_TESTS += tests/test_kernels_hack
SMG_UNIT_TESTS += tests/test_kernels_hack_attention
SMG_UNIT_TESTS += tests/test_kernels_hack_error
SMG_UNIT_TESTS += tests/test_kernels_measure
SMG_UNIT_TESTS += tests/test_importance_rcu
SMG_UNIT_TESTS += tests/test_importance_file
SMG_UNIT_TESTS += tests/test_generator
SMG_UNIT_TESTS += tests/test_selection
SMG_UNIT_TESTS += tests/test_agent_faults
SMG_UNIT_TESTS += tests/test_faults
SMG_UNIT_TESTS += tests/test_agent_order
SMG_UNIT_TESTS += tests/test_core_lanes
SMG_UNIT_TESTS += tests/test_core_pool
SMG_UNIT_TESTS += tests/test_driver_pair
SMG_UNIT_TESTS += tests/test_properties
SMG_UNIT_TESTS += tests/test_experiments_figures
SMG_UNIT_TESTS += tests/test_experiments_report
SMG_UNIT_TESTS += tests/test_experiments_timeline
SMG_UNIT_TESTS += tests/test_validation
SMG_UNIT_TESTS += tests/test_experiments_summarize
SMG_UNIT_TESTS += tests/test_engine
SMG_UNIT_TESTS += tests/test_engine_pair
SMG_UNIT_TESTS += tests/test_timing_reference
SMG_UNIT_TESTS += tests/test_world
SMG_UNIT_TESTS += tests/test_traces
SMG_UNIT_TESTS += tests/test_traces_jsonl
SMG_UNIT_TESTS += tests/test_traces_malformed
SMG_UNIT_TESTS += tests/test_traces_public
SMG_UNIT_TESTS += tests/test_lengths
SMG_UNIT_TESTS += tests/test_model_config
SMG_UNIT_TESTS += tests/test_hardware
SMG_UNIT_TESTS += tests/test_scenario
SMG_UNIT_TESTS += tests/test_scenario_origin
SMG_UNIT_TESTS += tests/test_experiments_replay
SMG_UNIT_TESTS += tests/test_experiments_records
SMG_UNIT_TESTS += tests/test_experiments_outdir
SMG_UNIT_TESTS += tests/test_experiments_log
SMG_UNIT_TESTS += tests/test_experiments_decisions
SMG_UNIT_TESTS += tests/test_fabric
SMG_UNIT_TESTS += tests/test_verbs_hello
SMG_UNIT_TESTS += tests/test_ofi_library
SMG_UNIT_TESTS += tests/test_emu_compute
SMG_UNIT_TESTS += tests/test_emu_harness
SMG_UNIT_TESTS += tests/test_emu_allocations
SMG_UNIT_TESTS += tests/test_emu_inject
SMG_UNIT_TESTS += tests/test_gpu_memory
SMG_UNIT_TESTS += tests/test_emu_join
SMG_UNIT_TESTS += tests/test_emu_link
SMG_UNIT_TESTS += tests/test_emu_measure
SMG_UNIT_TESTS += tests/test_compare
SMG_UNIT_TESTS += tests/test_core_store
SMG_UNIT_TESTS += tests/test_core_split
SMG_UNIT_TESTS += tests/test_core_scheme
SMG_UNIT_TESTS += tests/test_core_rank
SMG_UNIT_TESTS += tests/test_core_ledger
SMG_UNIT_TESTS += tests/test_core_cost
SMG_UNIT_TESTS += tests/test_core_budget
SMG_UNIT_TESTS += tests/test_core_actions
SMG_UNIT_TESTS += tests/test_core_model
SMG_UNIT_TESTS += tests/test_core_importance
SMG_UNIT_TESTS += tests/test_core_grid

# Helpers shared by tests, linked to every one.
SMG_TEST_SUPPORT =

# Scripts; e2e_*.sh run the program, whose path is in $SMARTGEN.
SMG_SCRIPT_TESTS = \
	tests/check-includes.sh \
	tests/check-nm.sh \
	tests/check-sources.sh \
	tests/cuda_mutants.sh \
	tests/cuda_runner.sh \
	tests/e2e_attention.sh \
	tests/e2e_bench.sh \
	tests/e2e_comfort.sh \
	tests/e2e_compare.sh \
	tests/e2e_decisions.sh \
	tests/e2e_emu.sh \
	tests/e2e_errors.sh \
	tests/e2e_faults.sh \
	tests/e2e_install.sh \
	tests/e2e_kernels.sh \
	tests/e2e_kernels_measure.sh \
	tests/e2e_malformed.sh \
	tests/e2e_output.sh \
	tests/e2e_report.sh \
	tests/e2e_roles.sh \
	tests/e2e_sim.sh \
	tests/e2e_traces.sh \
	tests/gpu_check_build.sh \
	tests/nvcc_gates.sh \
	tests/vm_fabric.sh \
	tests/vm_faults.sh

# What has threads: the kernels, and what computes with them; an emulation that comes up; the readers of a matrix that is
# replaced; a fabric that is woken. The
# thread sanitizer has nothing to look for in the others, whose process has one thread (check-sources.sh sees to it).
SMG_THREAD_TESTS = \
	tests/e2e_attention.sh \
	tests/e2e_bench.sh \
	tests/e2e_compare.sh \
	tests/e2e_emu.sh \
	tests/e2e_faults.sh \
	tests/e2e_kernels.sh \
	tests/e2e_kernels_measure.sh \
	tests/e2e_roles.sh \
	tests/test_emu_allocations \
	tests/test_emu_harness \
	tests/test_emu_inject \
	tests/test_emu_join \
	tests/test_emu_link \
	tests/test_emu_measure \
	tests/test_engine \
	tests/test_fabric \
	tests/test_importance_rcu \
	tests/test_kernels_attend \
	tests/test_kernels_attend_values \
	tests/test_kernels_hack \
	tests/test_kernels_hack_attention \
	tests/test_kernels_hash \
	tests/test_kernels_importance \
	tests/test_kernels_measure \
	tests/test_kernels_move \
	tests/test_kernels_offline \
	tests/test_kernels_page \
	tests/test_kernels_planted \
	tests/test_kernels_quality \
	tests/test_kernels_query \
	tests/test_kernels_scores \
	tests/test_kernels_split \
	tests/test_kernels_topk \
	tests/test_ofi_library
check-threads:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(SMG_THREAD_TESTS)'
.PHONY: check-threads

# On demand: too slow for make check.
vm-valgrind: all
	@$(AM_TESTS_ENVIRONMENT) $(BASH) $(srcdir)/tests/vm_valgrind.sh
.PHONY: vm-valgrind

# Only for the CPU runner: kernels/runner/sanitize.sh builds it.
EXTRA_DIST += tests/test_kernels_cuda.c

# Timing programs tests/bench_NAME.c, built and run by make bench only.
SMG_BENCHES =
SMG_BENCHES += tests/bench_fabric
SMG_BENCHES += tests/bench_kernels_move
SMG_BENCHES += tests/bench_kernels_split
SMG_BENCHES += tests/bench_kernels_topk

# std::nth_element beside topk. Without a C++ compiler the object is empty, and the bench says so.
CLEANFILES += kernels/bench_nth_element.o
tests_bench_kernels_topk_LDADD = kernels/bench_nth_element.o $(LDADD)
kernels/bench_nth_element.o: kernels/bench_nth_element.cpp
	$(AM_V_GEN)cxx='$(CXX)'; cxx=$${cxx:-c++}; if command -v "$${cxx%% *}" >/dev/null; \
	then $$cxx -std=c++17 -O2 -fno-exceptions -Wall -Wextra -c -o $@ $(srcdir)/kernels/bench_nth_element.cpp; \
	else echo 'typedef int empty;' | $(CC) -x c -c -o $@ -; fi
SMG_BENCHES += tests/bench_kernels_attend
SMG_BENCHES += tests/bench_kernels_hack
SMG_BENCHES += tests/bench_kernels_select

check_PROGRAMS += $(SMG_UNIT_TESTS)
EXTRA_PROGRAMS += $(SMG_BENCHES)
CLEANFILES += $(SMG_BENCHES)

# Every test and bench without variables of its own uses these.
AM_CPPFLAGS = $(SMG_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS) -DSMG_TESTDIR='"$(abs_top_srcdir)/tests"'
check_LTLIBRARIES = libsmgtest.la
libsmgtest_la_SOURCES = $(SMG_TEST_SUPPORT)
LDADD = libsmgtest.la libsmgfuzz.la libsmgall.la $(CMOCKA_LIBS)

# OpenBLAS first: GSL has a cblas of its own.
tests_bench_kernels_attend_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CFLAGS)
tests_bench_kernels_attend_LDADD = $(OPENBLAS_LIBS) $(LDADD)

# Allocations of this program go through the test, which lets the n-th fail.
tests_test_agent_faults_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
# So do the posts, registrations and polls of these, and what tells how a process goes (tests/emu_wrap.h).
SMG_EMU_WRAP = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=waitpid,--wrap=_exit \
	-Wl,--wrap=smg_harness_start,--wrap=smg_fabric_write,--wrap=smg_fabric_send,--wrap=smg_fabric_recv \
	-Wl,--wrap=smg_fabric_register,--wrap=smg_fabric_poll
# The CUDA driver, which is loaded; without CUDA there is nothing to answer for.
tests_test_gpu_memory_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_test_gpu_memory_LDFLAGS = $(AM_LDFLAGS)
if HAVE_CUDA
tests_test_gpu_memory_LDFLAGS += -Wl,--wrap=dlopen,--wrap=dlsym,--wrap=dlclose,--wrap=dlerror \
	-Wl,--wrap=smg_fabric_register_gpu
endif
tests_test_emu_inject_LDFLAGS = $(AM_LDFLAGS) $(SMG_EMU_WRAP)
tests_test_emu_allocations_LDFLAGS = $(AM_LDFLAGS) $(SMG_EMU_WRAP)

if HAVE_CMOCKA
TESTS += $(SMG_UNIT_TESTS) $(SMG_SCRIPT_TESTS)
else
check_DATA += cmocka-is-missing
cmocka-is-missing:
	@echo "make check needs cmocka 1.1.5 or later: install libcmocka-dev and run configure again" >&2; exit 1
endif

include $(top_srcdir)/tests/fuzz/local.mk

# A test that hangs is ended, with its children.
SMG_TEST_TIMEOUT = 600
LOG_COMPILER = timeout
AM_LOG_FLAGS = $(SMG_TEST_TIMEOUT)
TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = timeout
AM_SH_LOG_FLAGS = $(SMG_TEST_TIMEOUT) $(BASH)

# Tests ask for impossible sizes on purpose: the answer is NULL, not the end of the program.
SMG_ALLOCATOR_OPTIONS = allocator_may_return_null=1:max_allocation_size_mb=8192

AM_TESTS_ENVIRONMENT = \
	SMARTGEN='$(abs_top_builddir)/smartgen'; export SMARTGEN; \
	SMARTGEN_DATA='$(abs_top_srcdir)/traces/data'; export SMARTGEN_DATA; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	NM='$(NM_PROGRAM)'; export NM; \
	CC='$(CC)'; export CC; \
	SMG_SAN_CFLAGS='$(SAN_CFLAGS)'; export SMG_SAN_CFLAGS; \
	SMG_HEADER_CPPFLAGS='$(JANSSON_CFLAGS) $(YAML_CFLAGS) $(GSL_CFLAGS) $(CMOCKA_CFLAGS) $(CUDA_CPPFLAGS)'; export SMG_HEADER_CPPFLAGS; \
	$(SMG_CUDA_ENVIRONMENT) \
	LC_ALL=C.UTF-8; export LC_ALL; \
	ASAN_OPTIONS="$${ASAN_OPTIONS:-$(SMG_ALLOCATOR_OPTIONS):detect_stack_use_after_return=0}"; export ASAN_OPTIONS; \
	LSAN_OPTIONS="$${LSAN_OPTIONS:-suppressions=$(abs_top_srcdir)/tests/lsan.supp:print_suppressions=0}"; export LSAN_OPTIONS; \
	UBSAN_OPTIONS="$${UBSAN_OPTIONS:-print_stacktrace=1}"; export UBSAN_OPTIONS; \
	TSAN_OPTIONS="$${TSAN_OPTIONS:-$(SMG_ALLOCATOR_OPTIONS):suppressions=$(abs_top_srcdir)/tests/tsan.supp:second_deadlock_stack=1}"; export TSAN_OPTIONS;

# ---- make valgrind: readers, tests and small runs under memcheck; VALGRIND_HOW=fast leaves out what takes long ----
VALGRIND_HOW = all
valgrind: smartgen $(SMG_UNIT_TESTS) $(SMG_FUZZ_TARGETS)
	@$(AM_TESTS_ENVIRONMENT) $(BASH) $(srcdir)/tests/valgrind.sh $(VALGRIND_HOW)

.PHONY: valgrind

# Scripts run the program and read the core archive.
$(SMG_SCRIPT_TESTS:.sh=.log): smartgen libsmgcore.la
tests/vm_fabric.log: tests/test_fabric$(EXEEXT)

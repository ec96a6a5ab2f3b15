# Kernels around the KV cache: backends reference and cpu in C, cuda in CUDA C++, and the runner that tests .cu sources on a CPU.
noinst_LTLIBRARIES += libsmgkernels.la
SMG_ROOM_LIBS += libsmgkernels.la
libsmgkernels_la_CPPFLAGS = $(SMG_CPPFLAGS) $(SMG_CUDA_BACKEND) $(GSL_CFLAGS)
libsmgkernels_la_LIBADD = $(SMG_CUDA_LIBRARY) $(GSL_LIBS)
# Vectors wider than the ABI's stay inside a file: the note about passing them is of no use.
libsmgkernels_la_CFLAGS = $(AM_CFLAGS) $(PSABI_CFLAGS) $(KERNELS_FUZZ_CFLAGS)
# No fuzz target calls them, and clang takes minutes for sanitized vectors.
if FUZZING
KERNELS_FUZZ_CFLAGS = -fno-sanitize=all
endif
libsmgkernels_la_SOURCES = \
	kernels/anywhere.h \
	kernels/attention_cut.h \
	kernels/backend.h \
	kernels/backend_cpu.c \
	kernels/backend_host.c \
	kernels/blocks.h \
	kernels/check_attention.c \
	kernels/check_hack.c \
	kernels/check_importance.c \
	kernels/check_move.c \
	kernels/check_select.c \
	kernels/check_split.c \
	kernels/check_topk.c \
	kernels/cpu_attention.c \
	kernels/cpu_attention.h \
	kernels/cpu_attention_loops.inc \
	kernels/cpu_hack.c \
	kernels/cpu_hack_attention.c \
	kernels/cpu_hack_attention.h \
	kernels/cpu_hack_attention_loops.inc \
	kernels/cpu_hack_dots.inc \
	kernels/cpu_hack_loops.inc \
	kernels/cpu_hack_rows.inc \
	kernels/cpu_hash.c \
	kernels/cpu_hash_loops.inc \
	kernels/cpu_importance.c \
	kernels/cpu_move.c \
	kernels/cpu_move_loops.inc \
	kernels/cpu_page.c \
	kernels/cpu_page_loops.inc \
	kernels/cpu_query.c \
	kernels/cpu_query_loops.inc \
	kernels/cpu_scores.c \
	kernels/cpu_scores_loops.inc \
	kernels/cpu_split.c \
	kernels/cpu_split_loops.inc \
	kernels/cpu_topk.c \
	kernels/cpu_topk_loops.inc \
	kernels/dtype.h \
	kernels/hack.h \
	kernels/hack_size.c \
	kernels/isa_avx2_begin.inc \
	kernels/isa_avx2_end.inc \
	kernels/kernels.c \
	kernels/measure.c \
	kernels/measure_attend.c \
	kernels/measure_data.c \
	kernels/measure_fit.c \
	kernels/measure_move.c \
	kernels/measure_priv.h \
	kernels/measure_select.c \
	kernels/measure_time.c \
	kernels/offline_blas.c \
	kernels/offline_blas.h \
	kernels/offline_calibration.h \
	kernels/offline_hata.c \
	kernels/offline_hata.h \
	kernels/offline_hata_loss.c \
	kernels/offline_skew.c \
	kernels/planted.c \
	kernels/planted_loops.inc \
	kernels/quality.c \
	kernels/quality.h \
	kernels/quality_select.c \
	kernels/reference_attention.c \
	kernels/reference_hack.c \
	kernels/reference_hack_attention.c \
	kernels/reference_hash.c \
	kernels/reference_importance.c \
	kernels/reference_move.c \
	kernels/reference_page.c \
	kernels/reference_query.c \
	kernels/reference_scores.c \
	kernels/reference_split.c \
	kernels/reference_topk.c \
	kernels/select_ops.inc \
	kernels/smg_attend.h \
	kernels/smg_dtype.h \
	kernels/smg_kernels.h \
	kernels/smg_measure.h \
	kernels/smg_move.h \
	kernels/smg_offline.h \
	kernels/smg_planted.h \
	kernels/smg_quality.h \
	kernels/smg_select.h \
	kernels/squeeze.h \
	kernels/squeeze.inc \
	kernels/threads.c \
	kernels/threads.h \
	kernels/topk_order.h \
	kernels/turn.h \
	kernels/vec.h \
	kernels/vec_ops.inc

# ---- CUDA sources: each is compiled by nvcc, and by the C++ compiler for the CPU runner ----
# Every product .cu file.
SMG_CUDA_SOURCES = \
	kernels/cuda_attention.cu \
	kernels/cuda_backend.cu \
	kernels/cuda_hack.cu \
	kernels/cuda_hack_attention.cu \
	kernels/cuda_hash.cu \
	kernels/cuda_importance.cu \
	kernels/cuda_move.cu \
	kernels/cuda_page.cu \
	kernels/cuda_query.cu \
	kernels/cuda_scores.cu \
	kernels/cuda_split.cu \
	kernels/cuda_topk.cu
# What they include; all of them are compiled again when one of these changes.
SMG_CUDA_INCLUDES = \
	kernels/anywhere.h kernels/attention_cut.h \
	kernels/backend.h \
	kernels/blocks.h \
	kernels/hack.h \
	kernels/topk_order.h \
	kernels/turn.h \
	kernels/smg_attend.h \
	kernels/smg_dtype.h \
	kernels/smg_kernels.h \
	kernels/smg_move.h \
	kernels/smg_select.h \
	kernels/cuda_common.cuh \
	kernels/cuda_scan.cuh \
	kernels/cuda_select.cuh
# A test program of the kernels: C and .cu sources beside SMG_CUDA_SOURCES. kernels/runner/sanitize.sh builds it in every way.
SMG_CUDA_TESTS = \
	core/cost.c core/grid.c core/hack.c core/model.c core/rng.c core/scheme.c core/scheme_full.c \
	core/scheme_hack.c core/scheme_partial.c core/scheme_proactive_only.c core/scheme_smartgen.c \
	core/scheme_streamingllm.c core/split.c core/status.c core/world.c emu/layout.c kernels/backend_host.c \
	kernels/check_attention.c kernels/check_hack.c kernels/check_importance.c kernels/check_move.c \
	kernels/check_select.c kernels/check_split.c kernels/check_topk.c kernels/hack_size.c kernels/kernels.c \
	kernels/reference_attention.c kernels/reference_hack.c kernels/reference_hack_attention.c \
	kernels/reference_hash.c kernels/reference_importance.c kernels/reference_move.c kernels/reference_page.c \
	kernels/reference_query.c kernels/reference_scores.c kernels/reference_split.c kernels/reference_topk.c \
	tests/test_kernels_cuda.c tests/test_kernels_attend.c tests/test_kernels_attend_values.c tests/test_kernels_hack.c \
	tests/test_kernels_hack_attention.c tests/test_kernels_hack_error.c tests/test_kernels_hash.c \
	tests/test_kernels_importance.c tests/test_kernels_move.c tests/test_kernels_page.c tests/test_kernels_query.c \
	tests/test_kernels_scores.c tests/test_kernels_split.c tests/test_kernels_topk.c

# The runner, and what tests it.
SMG_RUNNER_SOURCES = kernels/runner/cuda_cpu_api.cpp kernels/runner/cuda_cpu_block.cpp kernels/runner/cuda_cpu_fiber.cpp \
	kernels/runner/cuda_cpu_grid.cpp kernels/runner/cuda_cpu_memory.cpp
SMG_RUNNER_INCLUDES = kernels/runner/cuda_cpu.h kernels/runner/cuda_cpu_control.h kernels/runner/cuda_cpu_internal.h
SMG_SELFTEST_CUDA = kernels/runner/selftest/selftest.cu kernels/runner/selftest/selftest_stack.cu
SMG_SELFTEST_C = kernels/runner/selftest/selftest.c kernels/runner/selftest/api.c
EXTRA_DIST += $(SMG_CUDA_SOURCES) $(SMG_CUDA_INCLUDES) $(SMG_RUNNER_SOURCES) $(SMG_RUNNER_INCLUDES) $(SMG_SELFTEST_CUDA) \
	$(SMG_SELFTEST_C) kernels/runner/selftest/selftest.h kernels/runner/sanitize.sh kernels/runner/sanitize.mk \
	kernels/runner/mutants.txt kernels/runner/mutants.digest kernels/checked.digest kernels/runner/harness/cmocka.h kernels/bench_nth_element.cpp \
	kernels/runner/selftest/spill.cu kernels/resources.txt

SUFFIXES = .cu .cpu.$(OBJEXT) .lo

# ---- By nvcc, for a GPU: libsmgcuda.la. Whoever links it needs no CUDA library at run time, nor a GPU to start ----
SMG_NVCCFLAGS = -std=c++17 -O2 -lineinfo $(CUDA_GENCODE) -I$(top_srcdir) -I$(top_builddir) \
	-Xcompiler -fPIC,-fvisibility=hidden,-ffp-contract=off,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics
SMG_NVCC_WERROR = -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror
if HAVE_CUDA
noinst_LTLIBRARIES += libsmgcuda.la
SMG_CUDA_LIBRARY = libsmgcuda.la
SMG_CUDA_BACKEND = -DSMG_KERNELS_CUDA
endif
libsmgcuda_la_SOURCES = $(SMG_CUDA_SOURCES)
libsmgcuda_la_LIBADD = $(CUDART_LIBS)

nvcc_verbose = $(nvcc_verbose_@AM_V@)
nvcc_verbose_ = $(nvcc_verbose_@AM_DEFAULT_V@)
nvcc_verbose_0 = @echo "  NVCC    " $@;

# libtool cannot drive nvcc: both objects are one, and the small file that says so is written here.
.cu.lo:
	@$(MKDIR_P) $(@D)/.libs
	$(nvcc_verbose)$(NVCC) $(SMG_NVCCFLAGS) $(NVCCFLAGS) -c -o $(@:.lo=.$(OBJEXT)) $<
	@cp $(@:.lo=.$(OBJEXT)) $(@D)/.libs/
	@o=`basename $@ .lo`.$(OBJEXT); \
	printf "# a libtool object file\n# Generated by libtool (or like it)\npic_object='.libs/%s'\nnon_pic_object='%s'\n" $$o $$o >$@

# ---- By the C++ compiler, for tests on the CPU: libsmgcudacpu.a, the runner and all kernels. Linked with $(CC) ----
if HAVE_CUDA_RUNNER
check_LIBRARIES = libsmgcudacpu.a
endif
EXTRA_LIBRARIES = libsmgcudacpu.a
# g++ has _GNU_SOURCE of its own accord.
SMG_CUDA_CPPFLAGS = -I$(top_srcdir) -I$(top_builddir) $(CUDA_CPPFLAGS)
SMG_RUNNER_CXXFLAGS = -std=c++17 -pthread $(RUNNER_WARN_CXXFLAGS) $(MATH_CFLAGS) $(VISIBILITY_CFLAGS) -fno-exceptions -fno-rtti \
	-fno-threadsafe-statics -fno-omit-frame-pointer
SMG_CUDA_CPU_OBJECTS = $(SMG_CUDA_SOURCES:.cu=.cpu.$(OBJEXT))
libsmgcudacpu_a_SOURCES = $(SMG_RUNNER_SOURCES) $(SMG_RUNNER_INCLUDES)
libsmgcudacpu_a_CPPFLAGS = $(SMG_CUDA_CPPFLAGS)
# Not under the thread sanitizer: what the scheduler hands on is no order that a GPU gives.
libsmgcudacpu_a_CXXFLAGS = $(SMG_RUNNER_CXXFLAGS) $(RUNNER_SAN_CFLAGS)
libsmgcudacpu_a_LIBADD = $(SMG_CUDA_CPU_OBJECTS)

cucpu_verbose = $(cucpu_verbose_@AM_V@)
cucpu_verbose_ = $(cucpu_verbose_@AM_DEFAULT_V@)
cucpu_verbose_0 = @echo "  CUCPU   " $@;

.cu.cpu.$(OBJEXT):
	@$(MKDIR_P) $(@D)
	$(cucpu_verbose)$(CXX) $(SMG_CUDA_CPPFLAGS) $(CPPFLAGS) $(SMG_RUNNER_CXXFLAGS) -Wno-unknown-pragmas $(SAN_CFLAGS) \
		$(CXXFLAGS) -include $(top_srcdir)/kernels/runner/cuda_cpu.h -x c++ -c -o $@ $<

$(SMG_CUDA_SOURCES:.cu=.lo): $(SMG_CUDA_INCLUDES)
$(SMG_CUDA_CPU_OBJECTS): $(SMG_CUDA_INCLUDES) $(SMG_RUNNER_INCLUDES)
CLEANFILES += $(SMG_CUDA_CPU_OBJECTS) $(SMG_CUDA_SOURCES:.cu=.o) $(SMG_CUDA_SOURCES:.cu=.lo)

# ---- Tests of the CUDA sources: what the scripts need to know ----
SMG_CUDA_ENVIRONMENT = \
	SMG_CUDA_RUNNER='$(HAVE_RUNNER)'; export SMG_CUDA_RUNNER; \
	SMG_CUDA_WHY='$(WHY_RUNNER)'; export SMG_CUDA_WHY; \
	SMG_CUDA_SOURCES='$(SMG_CUDA_SOURCES)'; export SMG_CUDA_SOURCES; \
	SMG_CUDA_TESTS='$(SMG_CUDA_TESTS)'; export SMG_CUDA_TESTS; \
	SMG_SELFTEST='$(SMG_SELFTEST_CUDA) $(SMG_SELFTEST_C)'; export SMG_SELFTEST; \
	CUDA_CPPFLAGS='$(CUDA_CPPFLAGS)'; export CUDA_CPPFLAGS; \
	CUDART_LIBS='$(CUDART_LIBS)'; export CUDART_LIBS; \
	NVCC='$(NVCC)'; export NVCC; \
	CXX='$(CXX)'; export CXX; \
	CUDA_ARCH='$(CUDA_ARCH)'; export CUDA_ARCH; \
	CUDA_GENCODE='$(CUDA_GENCODE)'; export CUDA_GENCODE;

# make check-cuda-KIND: the project's kernels in one kind of sanitize.sh, for example check-cuda-tsan.
check-cuda-plain check-cuda-ucontext check-cuda-asan check-cuda-tsan check-cuda-msan check-cuda-cov check-cuda-gpu:
	@$(AM_TESTS_ENVIRONMENT) $(BASH) $(srcdir)/kernels/runner/sanitize.sh `echo $@ | sed 's/check-cuda-//'` cuda-check/kernels \
		$(SMG_CUDA_SOURCES) $(SMG_CUDA_TESTS)

.PHONY: check-cuda-plain check-cuda-ucontext check-cuda-asan check-cuda-tsan check-cuda-msan check-cuda-cov check-cuda-gpu

# Plants each bug of kernels/runner/mutants.txt; to be done, and its digest committed, when a file of kernels/runner has changed.
cuda-mutants:
	@$(AM_TESTS_ENVIRONMENT) $(BASH) $(srcdir)/tests/cuda_mutants.sh --write

# Runs the project's kernels in every kind of sanitize.sh but gpu; to be done, and its digest committed, when a CUDA source, a test of
# one, or what they include has changed.
cuda-checked:
	@$(AM_TESTS_ENVIRONMENT) $(BASH) $(srcdir)/tests/cuda_runner.sh --write

# Writes kernels/resources.txt: registers and memory of each kernel on each architecture.
cuda-resources:
	@$(AM_TESTS_ENVIRONMENT) $(BASH) $(srcdir)/tests/nvcc_gates.sh --write

.PHONY: cuda-mutants cuda-checked cuda-resources

clean-local: clean-cuda
clean-cuda:
	rm -rf cuda-check

.PHONY: clean-cuda
# Checks on a GPU, and their timing program, which gpu_check.sh builds itself.
EXTRA_DIST += kernels/gpu_check.sh kernels/gpu_bench.c kernels/gpu_bench.h kernels/gpu_bench_cases.c kernels/gpu_bench_memory.c

# Builds one test program of CUDA and C sources in one kind, into a folder of its own. Called by sanitize.sh, with GNU make.
# Objects keep the path of their source: $(OUT)/kernels/x.cu.o. The runner's, the same for all programs of a kind, are in
# $(RUNNER_OUT).

RUNNER = kernels/runner/cuda_cpu_api.cpp kernels/runner/cuda_cpu_block.cpp kernels/runner/cuda_cpu_fiber.cpp \
	kernels/runner/cuda_cpu_grid.cpp kernels/runner/cuda_cpu_memory.cpp
# Test programs (tests/test_*.c) become one: each main gets a name of its own, and a main that calls them all is written here.
TESTS = $(filter tests/test_%.c,$(SOURCES))
OBJECTS = $(SOURCES:%=$(OUT)/%.o) $(if $(TESTS),$(OUT)/main.c.o)
RUNNER_OBJECTS = $(RUNNER:%=$(RUNNER_OUT)/%.o)

INCLUDES = -I$(TOP) $(if $(BUILD),-I$(BUILD)) $(CUDA_CPPFLAGS)
COMMON = -g -fno-omit-frame-pointer -ffp-contract=off -Wall -Wextra -Werror $(INCLUDES) $(DEFINES)
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE= -pthread $(COMMON) $(TEST_CPPFLAGS) $(KIND_FLAGS)
CUDA_CXXFLAGS = -std=c++17 -pthread -fno-exceptions -fno-rtti -fno-threadsafe-statics -Wno-unknown-pragmas $(COMMON) $(KIND_FLAGS)
# See cuda_cpu_internal.h for why the thread sanitizer stays out; coverage is of the kernels alone.
RUNNER_CXXFLAGS = $(filter-out --coverage,$(CUDA_CXXFLAGS)) -fno-sanitize=thread $(RUNNER_DEFINES)
ALL_NVCCFLAGS = -std=c++17 -O2 -lineinfo -Werror all-warnings -I$(TOP) $(if $(BUILD),-I$(BUILD)) $(DEFINES) $(CUDA_GENCODE) \
	-Xcompiler -Wall,-Wextra,-Werror,-ffp-contract=off,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics

# The harness instead of cmocka: see its header.
$(OUT)/tests/test_%.c.o: ALL_CFLAGS += -Dmain=main_of_$(notdir $*) -I$(TOP)/kernels/runner/harness -DSMG_KERNEL_TEST_CUDA -DSMG_KERNEL_TEST_CUDA_ONLY \
	-Wno-missing-prototypes
$(OUT)/kernels/%.c.o: ALL_CFLAGS += -DSMG_KERNELS_WITHOUT_CPU

# Written anew when the list has changed.
.PHONY: list
$(OUT)/main.c: list
	@mkdir -p $(@D)
	@{ for t in $(basename $(notdir $(TESTS))); do echo "int main_of_$$t(void);"; done; \
	echo 'int main(void) { int failed = 0;'; \
	for t in $(basename $(notdir $(TESTS))); do echo "failed += main_of_$$t();"; done; \
	echo 'return failed != 0; }'; } >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(OUT)/main.c.o: $(OUT)/main.c
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

ifeq ($(KIND),gpu)
$(OUT)/program: $(OBJECTS)
	$(CC) $(KIND_FLAGS) -pthread -o $@ $(OBJECTS) $(CUDART_LIBS) $(TEST_LIBS) -lm

$(OUT)/%.cu.o: $(TOP)/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(ALL_NVCCFLAGS) -MD -MF $(@:.o=.d) -c -o $@ $<
else
$(OUT)/program: $(OBJECTS) $(RUNNER_OBJECTS)
	$(CC) $(KIND_FLAGS) -pthread -o $@ $(OBJECTS) $(RUNNER_OBJECTS) $(TEST_LIBS) -lm

$(OUT)/%.cu.o: $(TOP)/%.cu $(TOP)/kernels/runner/cuda_cpu.h
	@mkdir -p $(@D)
	$(CXX) $(CUDA_CXXFLAGS) -MMD -MP -include $(TOP)/kernels/runner/cuda_cpu.h -x c++ -c -o $@ $<
endif

$(OUT)/%.c.o: $(TOP)/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(RUNNER_OUT)/%.cpp.o: $(TOP)/%.cpp
	@mkdir -p $(@D)
	$(CXX) $(RUNNER_CXXFLAGS) -MMD -MP -c -o $@ $<

-include $(OBJECTS:.o=.d) $(RUNNER_OBJECTS:.o=.d)

# Kernels around the KV cache: backends reference and cpu in C, cuda in CUDA C++, and the runner that tests .cu sources on a CPU.
noinst_LTLIBRARIES += libsmgkernels.la
SMG_ROOM_LIBS += libsmgkernels.la
libsmgkernels_la_CPPFLAGS = $(SMG_CPPFLAGS)
# Vectors wider than the ABI's stay inside a file: the note about passing them is of no use.
libsmgkernels_la_CFLAGS = $(AM_CFLAGS) $(PSABI_CFLAGS)
libsmgkernels_la_SOURCES = \
	kernels/backend.h \
	kernels/backend_host.c \
	kernels/check_importance.c \
	kernels/cpu_importance.c \
	kernels/dtype.h \
	kernels/isa_avx2_begin.inc \
	kernels/isa_avx2_end.inc \
	kernels/kernels.c \
	kernels/planted.c \
	kernels/reference_importance.c \
	kernels/smg_attend.h \
	kernels/smg_dtype.h \
	kernels/smg_kernels.h \
	kernels/smg_move.h \
	kernels/smg_planted.h \
	kernels/smg_select.h \
	kernels/threads.c \
	kernels/threads.h \
	kernels/unfinished.c \
	kernels/vec.h \
	kernels/vec_ops.inc

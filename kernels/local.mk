# CUDA kernels, their C references, and the CPU runner of the .cu sources.
noinst_LTLIBRARIES += libsmgkernels.la
SMG_ROOM_LIBS += libsmgkernels.la
libsmgkernels_la_CPPFLAGS = $(SMG_CPPFLAGS)
libsmgkernels_la_SOURCES =

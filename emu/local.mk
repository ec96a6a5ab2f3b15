# Transfer engine: fabrics, KV pools, memory registration, wire messages, process roles.
noinst_LTLIBRARIES += libsmgemu.la
SMG_ROOM_LIBS += libsmgemu.la
libsmgemu_la_CPPFLAGS = $(SMG_CPPFLAGS) $(LIBFABRIC_CFLAGS) $(CUDA_CPPFLAGS)
# libfabric is not linked but loaded when it is wanted (emu/ofi_library.h).
libsmgemu_la_LIBADD = $(VERBS_LIBS)
libsmgemu_la_SOURCES = \
	emu/arena.c \
	emu/arena.h \
	emu/bench.c \
	emu/bench.h \
	emu/bench_priv.h \
	emu/bench_trip.c \
	emu/bench_write.c \
	emu/compute.c \
	emu/compute.h \
	emu/compute_attend.c \
	emu/compute_error.c \
	emu/compute_plan.c \
	emu/compute_priv.h \
	emu/compute_select.c \
	emu/ctl.c \
	emu/decode_move.c \
	emu/decode_priv.h \
	emu/decode_side.c \
	emu/decode_verify.c \
	emu/emu.c \
	emu/emu.h \
	emu/fabric.c \
	emu/fabric.h \
	emu/fabric_ofi.c \
	emu/fabric_poll.c \
	emu/fabric_port.h \
	emu/fabric_post.c \
	emu/fabric_verbs.c \
	emu/fault.c \
	emu/fault.h \
	emu/gpu_memory.c \
	emu/gpu_memory.h \
	emu/harness.c \
	emu/harness.h \
	emu/harness_end.c \
	emu/harness_hosts.c \
	emu/harness_priv.h \
	emu/join.c \
	emu/join.h \
	emu/join_message.c \
	emu/layout.c \
	emu/layout.h \
	emu/link.c \
	emu/link.h \
	emu/measure.c \
	emu/measure.h \
	emu/measure_priv.h \
	emu/measure_wire.c \
	emu/ofi_library.c \
	emu/ofi_library.h \
	emu/pipe.c \
	emu/pipe.h \
	emu/prefill_side.c \
	emu/process.c \
	emu/process.h \
	emu/process_events.c \
	emu/process_execute.c \
	emu/process_lost.c \
	emu/process_reserve.c \
	emu/process_setup.c \
	emu/process_watch.c \
	emu/verbs.h \
	emu/verbs_connect.c \
	emu/verbs_device.c \
	emu/verbs_hello.c \
	emu/verbs_hello.h \
	emu/verbs_post.c \
	emu/verbs_progress.c \
	emu/wire.c \
	emu/wire.h

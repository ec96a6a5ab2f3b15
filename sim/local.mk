# Simulation driver and its two engines.
noinst_LTLIBRARIES += libsmgsim.la
SMG_ROOM_LIBS += libsmgsim.la
libsmgsim_la_CPPFLAGS = $(SMG_CPPFLAGS) $(SIMGRID_CFLAGS)
libsmgsim_la_LIBADD = $(SIMGRID_LIBS)
libsmgsim_la_SOURCES = \
	sim/driver.c \
	sim/driver.h \
	sim/engine.c \
	sim/engine.h \
	sim/engine_fluid.c \
	sim/engine_fluid.h \
	sim/engine_native.c \
	sim/engine_priv.h \
	sim/engine_timers.c \
	sim/execute.c \
	sim/faults.c \
	sim/memory.c \
	sim/sim_priv.h

# The only file that sees SimGrid.
if HAVE_SIMGRID
libsmgsim_la_SOURCES += sim/engine_simgrid.c
endif

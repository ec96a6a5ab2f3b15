# What the world looks like: scenario files, model configs, hardware, request traces, importance, selection sources.
noinst_LTLIBRARIES += libsmgtraces.la
SMG_ROOM_LIBS += libsmgtraces.la
libsmgtraces_la_CPPFLAGS = $(SMG_CPPFLAGS) $(SMG_DATA_CPPFLAGS) $(JANSSON_CFLAGS) $(YAML_CFLAGS) $(GSL_CFLAGS)
libsmgtraces_la_LIBADD = $(JANSSON_LIBS) $(YAML_LIBS) $(GSL_LIBS)
libsmgtraces_la_SOURCES = \
	traces/data_dir.c \
	traces/data_dir.h \
	traces/scenario.h \
	traces/text.c \
	traces/text.h \
	traces/world.h

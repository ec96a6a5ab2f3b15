# Sweeps, summaries, comparisons, figures' data.
noinst_LTLIBRARIES += libsmgexp.la
SMG_ROOM_LIBS += libsmgexp.la
libsmgexp_la_CPPFLAGS = $(SMG_CPPFLAGS) $(SMG_DATA_CPPFLAGS) $(JANSSON_CFLAGS) $(GSL_CFLAGS)
libsmgexp_la_LIBADD = $(JANSSON_LIBS) $(GSL_LIBS)
libsmgexp_la_SOURCES = \
	experiments/log.c \
	experiments/log.h \
	experiments/run.h

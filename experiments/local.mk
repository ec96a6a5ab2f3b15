# Sweeps, summaries, comparisons, figures' data.
noinst_LTLIBRARIES += libsmgexp.la
SMG_ROOM_LIBS += libsmgexp.la
libsmgexp_la_CPPFLAGS = $(SMG_CPPFLAGS) $(SMG_DATA_CPPFLAGS) $(JANSSON_CFLAGS) $(GSL_CFLAGS)
libsmgexp_la_LIBADD = $(JANSSON_LIBS) $(GSL_LIBS)
libsmgexp_la_SOURCES = \
	experiments/csv.c \
	experiments/csv.h \
	experiments/decisions.c \
	experiments/distribution.c \
	experiments/distribution.h \
	experiments/figure_draw.c \
	experiments/figure_draw.h \
	experiments/figure_fig11.c \
	experiments/figures.h \
	experiments/files.c \
	experiments/files.h \
	experiments/forks.c \
	experiments/forks.h \
	experiments/log.c \
	experiments/log.h \
	experiments/outdir.c \
	experiments/records_csv.c \
	experiments/replay.c \
	experiments/report.c \
	experiments/report.h \
	experiments/report_load.c \
	experiments/report_parts.c \
	experiments/report_priv.h \
	experiments/run.h \
	experiments/run_json.c \
	experiments/run_priv.h \
	experiments/run_write.c \
	experiments/summarize.c \
	experiments/summarize.h \
	experiments/summary.c \
	experiments/timeline.c \
	experiments/timeline.h

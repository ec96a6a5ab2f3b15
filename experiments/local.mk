# Sweeps, summaries, comparisons, figures' data.
noinst_LTLIBRARIES += libsmgexp.la
SMG_ROOM_LIBS += libsmgexp.la
libsmgexp_la_CPPFLAGS = $(SMG_CPPFLAGS) $(SMG_DATA_CPPFLAGS) $(JANSSON_CFLAGS) $(YAML_CFLAGS) $(GSL_CFLAGS)
libsmgexp_la_LIBADD = $(JANSSON_LIBS) $(YAML_LIBS) $(GSL_LIBS)
libsmgexp_la_SOURCES = \
	experiments/compare.c \
	experiments/compare.h \
	experiments/compare_priv.h \
	experiments/compare_read.c \
	experiments/compare_write.c \
	experiments/csv.c \
	experiments/csv.h \
	experiments/decisions.c \
	experiments/distribution.c \
	experiments/distribution.h \
	experiments/figure_draw.c \
	experiments/figure_draw.h \
	experiments/figure_heat.c \
	experiments/figure_point.c \
	experiments/figure_points.c \
	experiments/figure_points.h \
	experiments/figure_write.c \
	experiments/figures.c \
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
	experiments/report_figures.c \
	experiments/report_headline.c \
	experiments/report_html.c \
	experiments/report_load.c \
	experiments/report_priv.h \
	experiments/report_provenance.c \
	experiments/report_tables.c \
	experiments/report_timeline.c \
	experiments/report_timeline_read.c \
	experiments/report_timeline.h \
	experiments/report_validation.c \
	experiments/requests_check.c \
	experiments/run.h \
	experiments/run_json.c \
	experiments/run_priv.h \
	experiments/run_settings.c \
	experiments/run_write.c \
	experiments/summarize.c \
	experiments/summarize.h \
	experiments/summary.c \
	experiments/sweep.c \
	experiments/sweep.h \
	experiments/sweep_read.c \
	experiments/sweep_yaml.c \
	experiments/sweep_yaml.h \
	experiments/timeline.c \
	experiments/timeline.h \
	experiments/timeline_priv.h \
	experiments/timeline_requests.c \
	experiments/validation.c \
	experiments/validation.h \
	experiments/validation_expression.c \
	experiments/validation_read.c

# What the world looks like: scenario files, model configs, hardware, request traces, importance, selection sources.
noinst_LTLIBRARIES += libsmgtraces.la
SMG_ROOM_LIBS += libsmgtraces.la
libsmgtraces_la_CPPFLAGS = $(SMG_CPPFLAGS) $(SMG_DATA_CPPFLAGS) $(JANSSON_CFLAGS) $(YAML_CFLAGS) $(GSL_CFLAGS)
libsmgtraces_la_LIBADD = $(JANSSON_LIBS) $(YAML_LIBS) $(GSL_LIBS)
libsmgtraces_la_SOURCES = \
	traces/data_dir.c \
	traces/data_dir.h \
	traces/generator.c \
	traces/generator.h \
	traces/generator_facts.c \
	traces/generator_params.c \
	traces/hardware.c \
	traces/hardware_file.c \
	traces/hardware_file.h \
	traces/importance_auto.c \
	traces/importance_auto.h \
	traces/importance_bytes.c \
	traces/importance_bytes.h \
	traces/importance_facts.c \
	traces/importance_facts.h \
	traces/importance_file.c \
	traces/importance_file.h \
	traces/importance_merge.c \
	traces/importance_optimal.c \
	traces/importance_profile.c \
	traces/importance_profile.h \
	traces/instance.c \
	traces/lengths.c \
	traces/lengths.h \
	traces/lengths_table.c \
	traces/model_config.c \
	traces/plugin.c \
	traces/plugin.h \
	traces/json_found.c \
	traces/json_found.h \
	traces/model_config.h \
	traces/model_families.c \
	traces/model_window.c \
	traces/request_trace.c \
	traces/scenario.c \
	traces/scenario.h \
	traces/scenario_in_vain.c \
	traces/scenario_json.c \
	traces/scenario_keys.c \
	traces/scenario_keys.h \
	traces/scenario_origin.c \
	traces/scenario_origin.h \
	traces/scenario_value.c \
	traces/selection.c \
	traces/selection_entry.c \
	traces/selection_layer.c \
	traces/selection_record.c \
	traces/selection_recording.c \
	traces/selection_recording.h \
	traces/selection_rows.c \
	traces/selection_rows.h \
	traces/selection_table.c \
	traces/selection_table.h \
	traces/text.c \
	traces/text.h \
	traces/trace_cells.c \
	traces/trace_cells.h \
	traces/trace_columns.c \
	traces/trace_columns.h \
	traces/trace_guess.c \
	traces/trace_jsonl.c \
	traces/trace_jsonl.h \
	traces/trace_llmservingsim.c \
	traces/trace_mooncake.c \
	traces/trace_rows.c \
	traces/trace_rows.h \
	traces/trace_time.c \
	traces/trace_time.h \
	traces/workload.c \
	traces/workload.h \
	traces/world.c \
	traces/world.h

# Policy and agents. Needs nothing but libc and libm; strict C11, without GNU interfaces.
noinst_LTLIBRARIES += libsmgcore.la
SMG_ROOM_LIBS = libsmgcore.la
libsmgcore_la_CPPFLAGS = -I$(top_srcdir)
libsmgcore_la_SOURCES = \
	core/actions.c \
	core/agent.c \
	core/agent.h \
	core/agent_priv.h \
	core/budget.c \
	core/cost.c \
	core/cost.h \
	core/cost_decode.c \
	core/decode.c \
	core/event.c \
	core/grid.c \
	core/grid.h \
	core/hack.c \
	core/hack.h \
	core/importance.c \
	core/importance.h \
	core/lanes.c \
	core/lanes.h \
	core/ledger.c \
	core/ledger.h \
	core/model.c \
	core/model.h \
	core/names.c \
	core/observer.h \
	core/plan.c \
	core/plan.h \
	core/plugin.c \
	core/plugin.h \
	core/pool.c \
	core/pool.h \
	core/prefill.c \
	core/rank.c \
	core/rank.h \
	core/rank_optimal.c \
	core/rank_profile.c \
	core/rank_random.c \
	core/rank_sequential.c \
	core/rank_streamingllm.c \
	core/rcu.c \
	core/rcu.h \
	core/record.c \
	core/record.h \
	core/rng.c \
	core/rng.h \
	core/router.c \
	core/scheme.c \
	core/scheme.h \
	core/scheme_full.c \
	core/scheme_hack.c \
	core/scheme_partial.c \
	core/scheme_proactive_only.c \
	core/scheme_smartgen.c \
	core/scheme_streamingllm.c \
	core/selection.c \
	core/selection.h \
	core/split.c \
	core/split.h \
	core/stats.c \
	core/stats.h \
	core/status.c \
	core/status.h \
	core/world.c \
	core/world.h

/* Engine port: the table of engines, and the checks that every engine relies on. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "sim/engine_priv.h"

const struct smg_engine_type *const smg_engine_types[] = {
#ifdef HAVE_SIMGRID
    &smg_engine_simgrid,
#endif
    &smg_engine_native, NULL};

const struct smg_engine_type *smg_engine_find(const char *name)
{
    for (size_t i = 0; name && smg_engine_types[i]; i++)
        if (strcmp(smg_engine_types[i]->name, name) == 0)
            return smg_engine_types[i];
    return NULL;
}

/* A call in the wrong phase is a bug of the caller, not a value out of range. */
static int phase_check(const struct smg_engine *e, enum smg_engine_phase phase)
{
    if (!e)
        return SMG_ERR_INVALID;
    return e->phase == phase ? SMG_OK : SMG_ERR_PROTOCOL;
}

int smg_engine_create(const struct smg_engine_type *type, struct smg_engine **out)
{
    struct smg_engine *e;
    int status;

    if (!type || !out)
        return SMG_ERR_INVALID;
    status = type->create(&e);
    if (status != SMG_OK)
        return status;
    e->type = type;
    e->endpoints = 0;
    e->phase = SMG_ENGINE_SETUP;
    *out = e;
    return SMG_OK;
}

void smg_engine_destroy(struct smg_engine *e)
{
    if (e)
        e->type->destroy(e);
}

int smg_engine_endpoint(struct smg_engine *e, double tx_Bps, double rx_Bps, uint32_t *out)
{
    uint32_t id;
    int status = phase_check(e, SMG_ENGINE_SETUP);

    if (status != SMG_OK)
        return status;
    if (!out || !(tx_Bps > 0) || !(rx_Bps > 0))
        return SMG_ERR_INVALID;
    status = e->type->endpoint(e, tx_Bps, rx_Bps, &id);
    if (status != SMG_OK)
        return status;
    e->endpoints++;
    *out = id;
    return SMG_OK;
}

int smg_engine_core(struct smg_engine *e, double Bps)
{
    int status = phase_check(e, SMG_ENGINE_SETUP);

    if (status != SMG_OK)
        return status;
    return Bps > 0 ? e->type->core(e, Bps) : SMG_ERR_INVALID;
}

int smg_engine_run(struct smg_engine *e, smg_engine_body_fn body, void *arg)
{
    int status = phase_check(e, SMG_ENGINE_SETUP);

    if (status != SMG_OK)
        return status;
    if (!body)
        return SMG_ERR_INVALID;
    e->phase = SMG_ENGINE_RUNNING;
    status = e->type->run(e, body, arg);
    e->phase = SMG_ENGINE_ENDED;
    return status;
}

double smg_engine_now(struct smg_engine *e)
{
    return e && e->phase == SMG_ENGINE_RUNNING ? e->type->now(e) : NAN;
}

int smg_engine_timer(struct smg_engine *e, double delay_s, uint64_t tag)
{
    int status = phase_check(e, SMG_ENGINE_RUNNING);

    if (status != SMG_OK)
        return status;
    return delay_s >= 0 && isfinite(delay_s) ? e->type->timer(e, delay_s, tag) : SMG_ERR_INVALID;
}

int smg_engine_flow(struct smg_engine *e, uint32_t src, uint32_t dst, double bytes, uint64_t tag)
{
    int status = phase_check(e, SMG_ENGINE_RUNNING);

    if (status != SMG_OK)
        return status;
    if (src >= e->endpoints || dst >= e->endpoints || !(bytes >= 0) || !isfinite(bytes))
        return SMG_ERR_INVALID;
    return e->type->flow(e, src, dst, bytes, tag);
}

int smg_engine_next(struct smg_engine *e, uint64_t *tags, size_t cap, size_t *n_out)
{
    int status = phase_check(e, SMG_ENGINE_RUNNING);

    if (status != SMG_OK)
        return status;
    return tags && cap > 0 && n_out ? e->type->next(e, tags, cap, n_out) : SMG_ERR_INVALID;
}

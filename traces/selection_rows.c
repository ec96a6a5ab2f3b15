#include "traces/selection_rows.h"

#include <stdlib.h>

#include "core/selection.h"

int smg_rows_create(const struct smg_world *w, struct smg_rows **out, struct smg_diag *diag)
{
    struct smg_rows *r = calloc(1, sizeof(*r));
    int status;

    if (r == NULL) {
        return SMG_ERR_NOMEM;
    }
    r->world = w;
    if (w->scenario.selection.file[0] != '\0') {
        status = smg_recording_open(w->scenario.selection.file, &r->recording, diag);
    } else {
        status = smg_generator_create(&w->model, w->scenario.seed, w->scenario.profile_shift, &r->generator, diag);
    }
    if (status != SMG_OK) {
        smg_rows_destroy(r);
        return status;
    }
    *out = r;
    return SMG_OK;
}

void smg_rows_destroy(struct smg_rows *r)
{
    if (r == NULL) {
        return;
    }
    smg_generator_scratch_destroy(&r->scratch);
    smg_generator_destroy(r->generator);
    smg_recording_close(r->recording);
    smg_store_free(&r->store);
    free(r);
}

uint32_t smg_rows_k(const struct smg_rows *r, uint32_t request, uint32_t layer, uint32_t tokens)
{
    if (r->recording != NULL) {
        return smg_recording_k(r->recording, request);
    }
    return smg_generator_k(r->generator, layer, smg_selection_k(r->world, tokens));
}

/* The work space grows to the longest prompt seen. */
static int reserve(struct smg_rows *r, uint32_t tokens)
{
    struct smg_generator_scratch grown;
    int status;

    if (tokens <= r->scratch.tokens) {
        return SMG_OK;
    }
    status = smg_generator_scratch_create(tokens, &grown);
    if (status == SMG_OK) {
        smg_generator_scratch_destroy(&r->scratch);
        r->scratch = grown;
    }
    return status;
}

int smg_rows_reserve(struct smg_rows *r)
{
    const struct smg_world *w = r->world;
    uint32_t longest = 0, selecting = smg_model_selecting_layers(&w->model);
    uint64_t bytes = 0;
    int status;

    if (r->generator == NULL) {
        return SMG_OK;
    }
    for (uint32_t i = 0; i < w->n_requests; i++) {
        uint32_t tokens = w->requests[i].prompt_tokens;

        longest = tokens > longest ? tokens : longest;
        bytes += selecting * smg_store_cost(tokens * sizeof(struct smg_generator_weight));
    }
    status = reserve(r, longest);
    return status == SMG_OK ? smg_store_reserve(&r->store, bytes) : status;
}

static int make_weights(struct smg_rows *r, struct smg_rows_layer *l)
{
    int status = reserve(r, l->tokens);

    if (status != SMG_OK) {
        return status;
    }
    l->weight = smg_store_take_raw(&r->store, l->tokens * sizeof(*l->weight));
    if (l->weight == NULL) {
        return SMG_ERR_NOMEM;
    }
    smg_generator_weights(r->generator, l->request, l->layer, l->tokens, 1, l->weight);
    return SMG_OK;
}

int smg_rows_open(struct smg_rows *r, uint32_t request, uint32_t layer, uint32_t tokens, struct smg_rows_layer *out)
{
    struct smg_rows_layer l = {.open = 1, .request = request, .layer = layer, .tokens = tokens, .store = &r->store};
    int status = SMG_OK;

    if (r->recording != NULL && smg_recording_tokens(r->recording, request) != tokens) {
        return SMG_ERR_NOT_FOUND;
    }
    l.k = smg_rows_k(r, request, layer, tokens);
    if (r->generator != NULL) {
        status = make_weights(r, &l);
    }
    if (status == SMG_OK) {
        *out = l;
    }
    return status;
}

void smg_rows_close(struct smg_rows_layer *l)
{
    smg_store_give(l->store, l->weight);
    *l = (struct smg_rows_layer){0};
}

uint32_t smg_rows_get(struct smg_rows *r, const struct smg_rows_layer *l, uint32_t head, uint32_t step, int32_t *index)
{
    if (r->recording != NULL) {
        return smg_recording_row(r->recording, l->request, step, l->layer, head, index);
    }
    smg_generator_row(r->generator, l->request, l->layer, head, step, l->weight, l->tokens, l->k, &r->scratch, index);
    return l->k;
}

uint32_t smg_rows_count(const struct smg_rows *r, const struct smg_rows_layer *l, uint32_t head, uint32_t step)
{
    return r->recording != NULL ? smg_recording_row(r->recording, l->request, step, l->layer, head, NULL) : l->k;
}

/* Growable arrays of actions and items. */
#include <stdlib.h>
#include <string.h>

#include "core/agent.h"
#include "core/reserve.h"

/* Room for n elements: *array may move. On error nothing changes. */
static int reserve(void **array, size_t n, size_t *cap, size_t element_bytes)
{
    void *moved;

    if (n <= *cap) {
        return SMG_OK;
    }
    if (n > SIZE_MAX / element_bytes) {
        return SMG_ERR_NOMEM;
    }
    moved = realloc(*array, n * element_bytes);
    if (moved == NULL) {
        return SMG_ERR_NOMEM;
    }
    *array = moved;
    *cap = n;
    return SMG_OK;
}

/* Room for one more. */
static int grow(void **array, size_t n, size_t *cap, size_t element_bytes)
{
    size_t want = *cap > 0 ? *cap * 2 : 16;

    if (n < *cap) {
        return SMG_OK;
    }
    return want > *cap ? reserve(array, want, cap, element_bytes) : SMG_ERR_NOMEM;
}

int smg_actions_reserve(struct smg_actions *a, size_t actions, size_t items)
{
    void *array = a->action;
    int status = reserve(&array, actions, &a->cap, sizeof(*a->action));

    a->action = array;
    array = a->items;
    if (status == SMG_OK) {
        status = reserve(&array, items, &a->cap_items, sizeof(*a->items));
    }
    a->items = array;
    return status;
}

void smg_actions_free(struct smg_actions *a)
{
    free(a->action);
    free(a->items);
    memset(a, 0, sizeof(*a));
}

struct smg_action *smg_actions_add(struct smg_actions *a, enum smg_action_kind kind)
{
    void *array = a->action;
    struct smg_action *added;

    if (grow(&array, a->n, &a->cap, sizeof(*a->action)) != SMG_OK) {
        return NULL;
    }
    a->action = array;
    added = &a->action[a->n++];
    memset(added, 0, sizeof(*added));   /* padding too: logs of actions are compared byte for byte */
    added->kind = (uint32_t)kind;
    return added;
}

int smg_actions_item(struct smg_actions *a, const struct smg_item *item)
{
    void *array = a->items;
    struct smg_action *last;

    if (a->n == 0) {
        return SMG_ERR_INVALID;
    }
    if (a->n_items >= UINT32_MAX || grow(&array, a->n_items, &a->cap_items, sizeof(*a->items)) != SMG_OK) {
        return SMG_ERR_NOMEM;
    }
    a->items = array;
    last = &a->action[a->n - 1];
    if (last->n_items == 0) {
        last->item_first = (uint32_t)a->n_items;
    }
    a->items[a->n_items++] = *item;
    last->n_items++;
    return SMG_OK;
}

#include "core/selection.h"

#include <math.h>

uint32_t smg_selection_k(const struct smg_world *w, uint32_t prompt_tokens)
{
    double share = w->scenario.selection.cap, k;

    if (w->scenario.selector == SMG_SELECTOR_INFINIGEN && w->scenario.selection.natural < share)
        share = w->scenario.selection.natural;
    k = floor(share * (double)prompt_tokens + 1e-9); /* 0.2 * 7000 must not become 1399 */

    if (k < 1)
        return 1;
    return k > prompt_tokens ? prompt_tokens : (uint32_t)k;
}

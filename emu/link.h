/* Software shaping of the emulated links, shared by all processes of a cluster on one host: loopback has no link rate of its own,
 * so each transfer waits as long as it would hold the transmit link of its node and the receive link of the other, first come,
 * first served, chunk by chunk. Real devices (emu.link: free) are not shaped. */
#ifndef SMG_EMU_LINK_H
#define SMG_EMU_LINK_H

#include <stdint.h>

#include "core/world.h"

struct smg_links;

/* Before the processes are forked. */
int smg_links_create(const struct smg_world *w, struct smg_links **out);
void smg_links_destroy(struct smg_links *l);
/* Takes the links from node `from` to node `to` for `bytes`; returns the time (same clock as now_s) at which the last byte is
 * through. */
double smg_links_take(struct smg_links *l, uint32_t from, uint32_t to, double bytes, double now_s);

#endif

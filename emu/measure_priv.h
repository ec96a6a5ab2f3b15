/* Private to the measurement: what measure.c asks of measure_wire.c. */
#ifndef SMG_EMU_MEASURE_PRIV_H
#define SMG_EMU_MEASURE_PRIV_H

#include "emu/bench_priv.h"
#include "emu/measure.h"

enum { MEASURE_POINTS = 64 /* of a stream, at most */ };

/* Side 0. Chains of n blocks, each followed by its mask where mask_bytes is not 0, two chains in flight, for config->seconds and
 * at least 16 chains: payload rate behind the beginning. */
int smg_measure_do_stream(struct bench_side *s, uint32_t n, size_t block_bytes, size_t mask_bytes, double *Bps_out);
/* Side 0. From the post of a chain of n small WRITEs until its completion: median of config->samples. */
int smg_measure_do_chain(struct bench_side *s, uint32_t n, double *seconds_out);
/* Both sides. From the post of a list of entries until the gathered entries are back, 0: a small message each way: median of
 * config->samples; side 0 only. */
int smg_measure_do_trips(struct bench_side *s, uint32_t entries, double *seconds_out);
/* Both sides. From the post of a large message (*bytes_out) until it is complete at its sender; side 0 only. */
int smg_measure_do_large(struct bench_side *s, double *seconds_out, double *bytes_out);
/* The list of a request, beginning with the first-th of all in their order, and the entries of it gathered into the reply. */
void smg_measure_do_list(struct bench_side *s, uint32_t entries, uint32_t first);
void smg_measure_do_gather(struct bench_side *s, uint32_t entries);

#endif

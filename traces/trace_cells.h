/* Records of CSV text, after RFC 4180, cut into cells in place. */
#ifndef SMG_TRACES_TRACE_CELLS_H
#define SMG_TRACES_TRACE_CELLS_H

#include <stddef.h>
#include <stdint.h>

#define SMG_CELLS_MAX 256

struct smg_cells {
    char *cursor;  /* in a text that ends with a 0 byte */
    uint32_t line; /* where the record last read begins, from 1 */
    uint32_t next; /* where the next one begins */
};

/* text is modified as it is read. */
void smg_cells_begin(struct smg_cells *c, char *text);
/* Cuts the next record; blank ones are passed over, blanks around a cell are dropped, quotes are taken off, lines may end in
 * CRLF, the last one in nothing. The cells stay valid as long as the text. Returns NULL, with *n 0 at the end of the text; or
 * what is wrong. */
const char *smg_cells_next(struct smg_cells *c, char *cell[SMG_CELLS_MAX], size_t *n);

#endif

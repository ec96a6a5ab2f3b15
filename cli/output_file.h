/* Output files that a command writes over only when they are an earlier output of the same kind. */
#ifndef SMG_CLI_OUTPUT_FILE_H
#define SMG_CLI_OUTPUT_FILE_H

#include <stdio.h>

#define SMG_HEATMAP_HEADER "model,dataset,tokens_over,tokens_to,layer,position,frequency,origin\n"

struct smg_output_kind {
    const char *what;   /* "importance file" */
    const char *begins; /* how every such file begins */
};

extern const struct smg_output_kind smg_output_importance, smg_output_recording, smg_output_heatmap;

/* Whether a file of that kind can be made there, asked before the work: an exit status. What else lies there is not written over,
 * unless it is empty; and what another run is writing is left to it. To be called once: the place is this process' until it ends.
 * Says why not. */
int smg_output_check(const char *path, const struct smg_output_kind *kind);

/* Writes the file that was checked under its temporary name, and renames it: an exit status, SMG_EXIT_FAILED where the disk does
 * not take it. Then what was there before still is. */
int smg_output_write(const char *path, void (*write)(const void *what, FILE *f), const void *what);

#endif

/* libfabric, loaded when a fabric is first wanted. Linked, it would cost every start of the program 0.2 s: libraries that it
 * brings look for devices before main. Loaded, a program that was built with libfabric also runs where there is none. */
#ifndef SMG_EMU_OFI_LIBRARY_H
#define SMG_EMU_OFI_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct fi_info;
struct fi_fabric_attr;
struct fid_fabric;

/* The functions of libfabric that are not inline, under their names without fi_. */
struct smg_ofi_library {
    uint32_t (*version)(void);
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info); /* of NULL: an empty one */
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    const char *(*strerror)(int errnum);
};

/* Loads the library once in the life of a process, before other threads start; later calls cost nothing. Signal handlers stay as
 * they are. SMG_ERR_UNSUPPORTED: not built in, not on this machine, or too old; diag (may be NULL) says which. */
int smg_ofi_load(const struct smg_ofi_library **out, struct smg_diag *diag);

/* "1.17" of the loaded library, "" before smg_ofi_load() succeeded. */
void smg_ofi_version(char *text, size_t text_bytes);

#endif

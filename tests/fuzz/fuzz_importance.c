/* Importance files: as they are, and with the right checksum; what was accepted is resampled, judged, merged and written again.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fuzz/sealed.h"
#include "traces/importance_facts.h"
#include "traces/importance_file.h"

enum { BLOCKS = 7 };

struct profile {
    struct smg_importance *im;
    struct smg_importance_info info;
};

static int share(float x)
{
    return x >= 0 && x <= 1;
}

static void check_groups(const struct smg_importance *im)
{
    size_t matrix = (size_t)im->layers * im->blocks;

    for (uint32_t g = 0; g < im->groups; g++) {
        fuzz_must(im->group_lo[g] < im->group_hi[g] && im->requests[g] && im->steps[g] >= im->requests[g]);
        for (size_t i = 0; i < matrix; i++) {
            fuzz_must(share(im->value[g * matrix + i]) == (i / im->blocks >= SMG_DENSE_LAYERS));
            fuzz_must(isfinite(im->variance[g * matrix + i]) && im->variance[g * matrix + i] >= 0);
        }
    }
}

static void check(const struct profile *p)
{
    const struct smg_importance *im = p->im;
    float row[BLOCKS];

    check_groups(im);
    fuzz_must(p->info.cap > 0 && p->info.cap <= 1);
    fuzz_must(im->datasets <= SMG_DATASETS_MAX);
    for (size_t i = 0; i < (size_t)im->layers * im->overlap_steps; i++)
        fuzz_must(share(im->overlap[i]) && share(im->newrate[i]));
    fuzz_must(smg_importance_group(im, 7000) < im->groups);
    for (uint32_t l = SMG_DENSE_LAYERS; l < im->layers; l++) {
        smg_importance_resample(im, 0, l, BLOCKS, row);
        for (int b = 0; b < BLOCKS; b++)
            fuzz_must(share(row[b]));
    }
}

static void judge(const struct profile *p)
{
    struct smg_model m = {.name = "fuzz", .layers = p->im->layers, .kv_heads = p->info.kv_heads};
    struct smg_fact fact[SMG_FACTS];
    struct smg_diag diag = {""};

    fuzz_must(smg_importance_fits("f", p->im, &p->info, &m, &diag) == SMG_OK);
    fuzz_must(smg_importance_facts(p->im, &p->info, &m, NULL, fact) == SMG_OK);
}

/* What the writer writes, the reader takes. */
static void write_and_read(const struct profile *p)
{
    char path[512];
    struct smg_importance_info info;
    struct smg_importance *im;
    struct smg_diag diag = {""};

    snprintf(path, sizeof path, "%s/again", fuzz_folder());
    fuzz_must(smg_importance_write(path, p->im, &p->info, &diag) == SMG_OK);
    fuzz_must(smg_importance_read(path, &im, &info, &diag) == SMG_OK);
    fuzz_must(im->groups == p->im->groups && im->layers == p->im->layers && im->blocks == p->im->blocks);
    fuzz_must(!strcmp(info.model, p->info.model) && info.cap == p->info.cap && info.seed == p->info.seed);
    smg_importance_destroy(im);
    unlink(path);
}

static void merge(const struct profile *p)
{
    struct smg_diag diag = {""};
    struct profile both;
    int status = smg_importance_merge(p->im, &p->info, p->im, &p->info, &both.im, &both.info, &diag);

    fuzz_told(status, &diag);
    if (status)
        return;
    check(&both);
    write_and_read(&both);
    smg_importance_destroy(both.im);
}

static void read_file(const void *data, size_t bytes)
{
    struct smg_diag diag = {""};
    struct profile p = {0};
    int status = smg_importance_read(fuzz_file(0, data, bytes), &p.im, &p.info, &diag);

    fuzz_told(status, &diag);
    if (status)
        return;
    check(&p);
    judge(&p);
    write_and_read(&p);
    merge(&p);
    smg_importance_destroy(p.im);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *sealed = fuzz_sealed(data, bytes);

    if (bytes < 8 || memcmp(data, sealed, bytes))
        read_file(data, bytes);
    read_file(sealed, bytes);
    free(sealed);
    return 0;
}

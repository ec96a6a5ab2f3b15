/* The backend cpu: threads, and a choice of instruction sets. */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdio.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/threads.h"

static const char *const isa_names[] = {"base", "avx2"};

static enum smg_isa best_isa(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;

    /* clang 14 has no name for f16c; the system's part in it is that of AVX2. */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
        return SMG_ISA_AVX2;
#endif
    return SMG_ISA_BASE;
}

static int choose_isa(struct smg_kernels *k, const char *name)
{
    k->isa = best_isa();
    if (!name)
        return SMG_OK;
    for (int i = SMG_ISA_BASE; i <= SMG_ISA_AVX2; i++) {
        if (strcmp(name, isa_names[i]))
            continue;
        if (i > (int)k->isa) {
            smg_kernels_refuse(k, "this machine has no %s (with fma, f16c, bmi2, popcnt)", name);
            return SMG_ERR_UNSUPPORTED;
        }
        k->isa = (enum smg_isa)i;
        return SMG_OK;
    }
    smg_kernels_refuse(k, "instruction set '%.40s': expected base or avx2", name);
    return SMG_ERR_NOT_FOUND;
}

static int cpu_open(struct smg_kernels *k, const struct smg_kernels_options *options)
{
    int status = choose_isa(k, options->isa);

    if (!status)
        status = smg_threads_open(options->threads, &k->threads);
    if (status) {
        if (!k->diag.text[0])
            smg_kernels_refuse(k, "cannot start %u threads", options->threads);
        return status;
    }
    snprintf(k->where, sizeof k->where, "cpu, %u threads, %s", smg_threads_count(k->threads), isa_names[k->isa]);
    return SMG_OK;
}

static void cpu_close(struct smg_kernels *k)
{
    smg_threads_close(k->threads);
}

const struct smg_kernels_type smg_kernels_cpu = {.name = "cpu",
                                                 .open = cpu_open,
                                                 .close = cpu_close,
                                                 SMG_HOST_MEMORY,
#define ENTRY(name, text) .name = smg_cpu_##name,
                                                 SMG_KERNEL_MAP(ENTRY)
#undef ENTRY
};

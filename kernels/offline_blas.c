#include "kernels/offline_blas.h"

#include <dlfcn.h>
#include <gsl/gsl_cblas.h>
#include <pthread.h>
#include <stddef.h>

/* The C interface to BLAS is the same in both: int sizes, enums of these values. */
static struct {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_sgemv) sgemv;
    const char *name;
} best = {cblas_sgemm, cblas_sgemv, "GSL"};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A function of a library, without a cast that ISO C forbids. */
static int find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);

    *(void **)function = address;
    return address != NULL;
}

/* The library stays loaded. */
static void load(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void (*set_threads)(int);
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_sgemv) sgemv;

    if (!library)
        return;
    if (!find(library, "openblas_set_num_threads", &set_threads) || !find(library, "cblas_sgemm", &sgemm) ||
        !find(library, "cblas_sgemv", &sgemv)) {
        dlclose(library);
        return;
    }
    set_threads(1);
    best.sgemm = sgemm;
    best.sgemv = sgemv;
    best.name = "OpenBLAS";
}

void smg_gemm(const struct smg_gemm *g)
{
    pthread_once(&once, load);
    (g->portable ? cblas_sgemm : best.sgemm)(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans,
                                             g->transpose_b ? CblasTrans : CblasNoTrans, g->m, g->n, g->k, 1, g->a, g->lda, g->b,
                                             g->ldb, g->beta, g->c, g->ldc);
}

void smg_gemv(int portable, int m, int n, const float *a, int lda, const float *x, float *y)
{
    pthread_once(&once, load);
    (portable ? cblas_sgemv : best.sgemv)(CblasRowMajor, CblasNoTrans, m, n, 1, a, lda, x, 1, 0, y, 1);
}

const char *smg_blas_name(void)
{
    pthread_once(&once, load);
    return best.name;
}

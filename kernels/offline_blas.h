/* Private to kernels/: products of matrices on the host. OpenBLAS where the machine has it, loaded when first asked for, so that
 * nothing links to it and a program that trains nothing does not start its threads; GSL's CBLAS otherwise. It is set to one
 * thread: then its results do not depend on the number of threads. */
#ifndef SMG_KERNELS_OFFLINE_BLAS_H
#define SMG_KERNELS_OFFLINE_BLAS_H

/* c[m][n] = beta c + op(a) op(b), row-major; op(a) is [m][k]: a itself, or its transpose where transpose_a. ld: elements from row
 * to row of what lies in memory. portable: GSL's in any case. */
struct smg_gemm {
    int portable, transpose_a, transpose_b, m, n, k;
    const float *a;
    int lda;
    const float *b;
    int ldb;
    float beta;
    float *c;
    int ldc;
};
void smg_gemm(const struct smg_gemm *g);

/* y[m] = a[m][n] x. */
void smg_gemv(int portable, int m, int n, const float *a, int lda, const float *x, float *y);

/* "OpenBLAS" or "GSL". */
const char *smg_blas_name(void);

#endif

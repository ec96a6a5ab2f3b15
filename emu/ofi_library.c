#include "config.h"

#include "emu/ofi_library.h"

#include <stdio.h>

#ifdef HAVE_LIBFABRIC

#include <dlfcn.h>
#include <signal.h> /* pthread_sigmask as well */
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#define SONAME "libfabric.so.1"

/* The interface is the one of the headers, whatever stands in the table above. */
#define SAME(member, function)                                                                                                   \
    _Static_assert(__builtin_types_compatible_p(__typeof__(((struct smg_ofi_library *)0)->member), __typeof__(&function)),       \
                   #function)
SAME(version, fi_version);
SAME(getinfo, fi_getinfo);
SAME(freeinfo, fi_freeinfo);
SAME(dupinfo, fi_dupinfo);
SAME(fabric, fi_fabric);
SAME(strerror, fi_strerror);

static struct smg_ofi_library library;
static int loaded;

static int refuse(struct smg_diag *diag, const char *why)
{
    if (diag)
        snprintf(diag->text, sizeof diag->text,
                 "libfabric cannot be used: %.300s; install libfabric1, or simulate with smartgen sim", why);
    return SMG_ERR_UNSUPPORTED;
}

/* ---- Signals: libinfinipath, which libfabric loads, takes these and answers with exit(1). A crash would look like a failed run,
 * and SIGTERM inside libfabric would wait for its locks for ever. So they are put back as they were. ---- */

static const int taken[] = {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGILL, SIGABRT};
enum { TAKEN = sizeof taken / sizeof taken[0] };

struct signals {
    struct sigaction act[TAKEN];
    sigset_t mask;
};

/* One that comes meanwhile waits for its proper handler; a crash cannot wait. */
static void keep_signals(struct signals *s)
{
    sigset_t wait;

    sigemptyset(&wait);
    sigaddset(&wait, SIGINT);
    sigaddset(&wait, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &wait, &s->mask);
    for (size_t i = 0; i < TAKEN; i++)
        sigaction(taken[i], NULL, &s->act[i]);
}

static void restore_signals(const struct signals *s)
{
    for (size_t i = 0; i < TAKEN; i++)
        sigaction(taken[i], &s->act[i], NULL);
    pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
}

static void *open_library(void)
{
    struct signals s;
    void *handle;

    keep_signals(&s);
    handle = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
    restore_signals(&s);
    return handle;
}

/* ---- Functions ---- */

static int find(void *handle, const char *name, void *function)
{
    void *symbol = dlsym(handle, name);

    memcpy(function, &symbol, sizeof symbol); /* ISO C has no conversion from void * to a function */
    return !symbol;
}

static int find_all(void *handle, struct smg_ofi_library *l)
{
    return find(handle, "fi_version", &l->version) || find(handle, "fi_getinfo", &l->getinfo) ||
           find(handle, "fi_freeinfo", &l->freeinfo) || find(handle, "fi_dupinfo", &l->dupinfo) ||
           find(handle, "fi_fabric", &l->fabric) || find(handle, "fi_strerror", &l->strerror);
}

/* dlsym finds the newest interface where the linker would have found the one of the headers. They differ in fields that were
 * appended to structures which the library allocates, so a library that is newer than the headers is as good; an older one than
 * the program asks for is not. */
int smg_ofi_load(const struct smg_ofi_library **out, struct smg_diag *diag)
{
    const uint32_t wanted = FI_VERSION(1, 17);
    struct smg_ofi_library l;
    void *handle;

    if (!loaded) {
        handle = open_library();
        if (!handle)
            return refuse(diag, dlerror());
        if (find_all(handle, &l)) {
            int status = refuse(diag, dlerror());
            dlclose(handle);
            return status;
        }
        if (FI_VERSION_LT(l.version(), wanted)) {
            dlclose(handle);
            return refuse(diag, SONAME " is older than 1.17");
        }
        library = l; /* the handle stays for the life of the process */
        loaded = 1;
    }
    *out = &library;
    return SMG_OK;
}

void smg_ofi_version(char *text, size_t text_bytes)
{
    uint32_t v = loaded ? library.version() : 0;

    text[0] = '\0';
    if (loaded)
        snprintf(text, text_bytes, "%u.%u", FI_MAJOR(v), FI_MINOR(v));
}

#else

int smg_ofi_load(const struct smg_ofi_library **out, struct smg_diag *diag)
{
    (void)out;
    if (diag)
        snprintf(diag->text, sizeof diag->text,
                 "this program was built without libfabric: install libfabric-dev, configure again");
    return SMG_ERR_UNSUPPORTED;
}

void smg_ofi_version(char *text, size_t text_bytes)
{
    (void)text_bytes;
    text[0] = '\0';
}

#endif

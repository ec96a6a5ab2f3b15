/* smartgen doctor: what this program and this machine offer, and what to install for what is missing. An absence is no failure, but
 * for the data files: without them no command works. */
#include "config.h"

#include <dirent.h>
#include <gsl/gsl_version.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifdef HAVE_VERBS
#include <infiniband/verbs.h>
#endif

#include "cli/cli.h"
#include "emu/fabric.h"
#include "emu/ofi_library.h"
#include "experiments/figures.h"
#include "experiments/sweep.h"
#include "sim/engine.h"
#include "traces/world.h"

#define AGAIN ", then configure and make again"

struct fact {
    const char *group, *name;
    int there;
    int optional;       /* nothing that runs on this machine today is poorer without it */
    char found[192];
    const char *gains;  /* the command that needs it */
    const char *remedy; /* what to do when it is not there, NULL: nothing to do */
};

struct facts {
    struct fact fact[40];
    size_t n;
};

/* found: as printf. */
static void add(struct facts *f, const char *group, const char *name, int there, const char *gains, const char *remedy,
                const char *found, ...) __attribute__((format(printf, 7, 8)));

static void add(struct facts *f, const char *group, const char *name, int there, const char *gains, const char *remedy,
                const char *found, ...)
{
    struct fact *x = &f->fact[f->n];
    va_list args;

    if (f->n == sizeof f->fact / sizeof f->fact[0])
        return;
    f->n++;
    *x = (struct fact){group, name, there, 0, "", gains, there ? NULL : remedy};
    va_start(args, found);
    vsnprintf(x->found, sizeof x->found, found, args);
    va_end(args);
}

/* Of the fact added last. */
static void optional(struct facts *f)
{
    f->fact[f->n - 1].optional = 1;
}

/* ---- Small looks at the system ---- */

/* The first line of a file; "" when there is none. */
static void first_line(const char *path, char *out, size_t bytes)
{
    FILE *f = fopen(path, "r");

    out[0] = '\0';
    if (!f)
        return;
    if (fgets(out, (int)bytes, f))
        out[strcspn(out, "\n")] = '\0';
    fclose(f);
}

/* The number behind "NAME:" in /proc/meminfo, in its unit; -1: not there. */
static long meminfo(const char *name)
{
    FILE *f = fopen("/proc/meminfo", "r");
    size_t n = strlen(name);
    char line[128];
    long value = -1;

    while (f && value < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, name, n) && line[n] == ':')
            value = strtol(line + n + 1, NULL, 10);
    if (f)
        fclose(f);
    return value;
}

/* Names in a folder, without those that begin with a dot; returns how many. */
static int names_in(const char *path, char *out, size_t bytes)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    size_t used = 0;
    int n = 0;

    out[0] = '\0';
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.' && used < bytes) {
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", n ? ", " : "", e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

static int in_path(const char *program, char file[SMG_PATH_MAX])
{
    const char *path = getenv("PATH");

    while (path && *path) {
        size_t n = strcspn(path, ":");
        snprintf(file, SMG_PATH_MAX, "%.*s/%s", (int)n, path, program);
        if (!access(file, X_OK))
            return 1;
        path += n + (path[n] == ':');
    }
    return 0;
}

/* ---- Libraries ---- */

static void simgrid(struct facts *f)
{
    static const char gains[] = "sim --engine simgrid (native works without)";

#ifdef HAVE_SIMGRID
    add(f, "Libraries", "simgrid", 1, gains, NULL, "%s", SMG_SIMGRID_VERSION);
#else
    add(f, "Libraries", "simgrid", 0, gains, "install libsimgrid-dev" AGAIN, "not built in");
#endif
}

static void libfabric(struct facts *f)
{
    const struct smg_fabric_type *type = smg_fabric_find("ofi");
    struct smg_fabric_config config = {NULL, NULL, 0, 0, NULL, NULL};
    struct smg_fabric *fabric = NULL;
    struct smg_diag diag = {""};
    char version[32];
    int status;

    if (!type) {
        add(f, "Libraries", "libfabric", 0, "emu", "install libfabric-dev" AGAIN, "not built in");
        return;
    }
    status = smg_fabric_load(type, &diag);
    smg_ofi_version(version, sizeof version);
    if (status) {
        add(f, "Libraries", "libfabric", 0, "emu", "install libfabric1", "built in, cannot be loaded");
        return;
    }
    add(f, "Libraries", "libfabric", 1, "emu", NULL, "%s", version);
    status = smg_fabric_open(type, &config, &fabric, &diag);
    add(f, "Libraries", "tcp", !status, "emu, its default provider", "bring up the loopback interface", "%s",
        status ? diag.text : "opens on loopback");
    smg_fabric_close(fabric);
}

static void libraries(struct facts *f)
{
    simgrid(f);
    libfabric(f);
#ifdef HAVE_VERBS
    add(f, "Libraries", "verbs", 1, "RDMA devices", NULL, "libibverbs is built in");
#else
    add(f, "Libraries", "verbs", 0, "RDMA devices", "install libibverbs-dev" AGAIN, "not built in");
#endif
#ifdef HAVE_CUDA
    add(f, "Libraries", "cuda", 1, "kernels on a GPU", NULL, "toolkit %s at build time", SMG_CUDA_VERSION);
#else
    add(f, "Libraries", "cuda", 0, "kernels on a GPU", "install nvidia-cuda-toolkit (non-free)" AGAIN, "not built in");
#endif
    optional(f);
    add(f, "Libraries", "jansson", 1, "every JSON file", NULL, "%s", jansson_version_str());
    add(f, "Libraries", "gsl", 1, "statistics", NULL, "%s", gsl_version);
}

/* ---- Devices ---- */

/* Returns whether there is a device that can be used. */
static int rdma(struct facts *f)
{
    static const char gains[] = "real link rates";
    char kernel[128];
    int in_kernel = names_in("/sys/class/infiniband", kernel, sizeof kernel), usable = in_kernel;
    const char *remedy = "load the driver of the NIC; without one: modprobe rdma_rxe (soft-RoCE), rdma link add";

#ifdef HAVE_VERBS
    struct ibv_device **devices = ibv_get_device_list(&usable);
    if (devices)
        ibv_free_device_list(devices);
#endif
    if (in_kernel && !usable)
        add(f, "Devices", "rdma", 0, gains, "install ibverbs-providers", "%s, without a provider in user space", kernel);
    else
        add(f, "Devices", "rdma", usable > 0, gains, remedy, "%s", usable > 0 ? kernel : "no device");
    return usable > 0;
}

static void gpu(struct facts *f)
{
    char version[64], peer[8];
    int there = !access("/dev/nvidia0", F_OK);

    first_line("/sys/module/nvidia/version", version, sizeof version);
    add(f, "Devices", "gpu", there, "kernels on a GPU", "install nvidia-driver (non-free) where there is a GPU", "%s%s",
        there ? "NVIDIA, driver " : "no NVIDIA device node", there ? version[0] ? version : "of unknown version" : "");
    optional(f);
    if (!there)
        return;
    first_line("/sys/module/nvidia_peermem/initstate", peer, sizeof peer);
    add(f, "Devices", "gpudirect", peer[0] != 0, "RDMA into GPU memory (not yet)", "modprobe nvidia_peermem", "nvidia_peermem %s",
        peer[0] ? "is loaded" : "is not loaded");
    optional(f);
}

/* ---- Limits ---- */

/* "unlimited", or the limit in a unit. */
static void limit_text(rlim_t limit, double unit, const char *name, char *out, size_t bytes)
{
    if (limit == RLIM_INFINITY)
        snprintf(out, bytes, "unlimited");
    else
        snprintf(out, bytes, "%.10g%s", (double)limit / unit, name);
}

static void limits(struct facts *f, int has_rdma)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN), available = meminfo("MemAvailable"), pages = meminfo("HugePages_Total");
    struct rlimit locked = {0, 0}, files = {0, 0};
    char text[32], transparent[64];
    const char *chosen;

    add(f, "Limits", "cpus", cpus > 1, "emu: one process per instance; figures -j", NULL, "%ld", cpus);
    add(f, "Limits", "memory", available > 1 << 20, "emu: the pools of all instances", NULL, "%.3g GB available",
        (double)available * 1024e-9);
    getrlimit(RLIMIT_MEMLOCK, &locked);
    limit_text(locked.rlim_cur, 1048576, " MiB", text, sizeof text);
    add(f, "Limits", "memlock", locked.rlim_cur >= (rlim_t)1 << 30, "memory registered with RDMA devices; tcp needs none",
        "ulimit -l unlimited (limits.conf: memlock)", "%s", text);
    if (!has_rdma)
        optional(f);
    getrlimit(RLIMIT_NOFILE, &files);
    limit_text(files.rlim_cur, 1, "", text, sizeof text);
    add(f, "Limits", "open files", files.rlim_cur >= 1024, "emu: three sockets per pair of instances",
        "ulimit -n 4096 (limits.conf: nofile)", "%s", text);
    first_line("/sys/kernel/mm/transparent_hugepage/enabled", transparent, sizeof transparent); /* "always [madvise] never" */
    chosen = strchr(transparent, '[');
    add(f, "Limits", "huge pages", pages > 0, "emu: pools ask for transparent ones", NULL,
        "%ld reserved of %ld KiB; transparent: %.*s", pages < 0 ? 0 : pages, meminfo("Hugepagesize"),
        chosen ? (int)strcspn(chosen + 1, "]") : 7, chosen ? chosen + 1 : "unknown");
    optional(f);
}

/* ---- Programs and folders ---- */

/* A folder of something else is no data folder. */
static int has_data(void)
{
    char file[SMG_PATH_MAX];
    int n = snprintf(file, sizeof file, "%s/workloads.json", smg_data_dir());

    return n > 0 && n < (int)sizeof file && !access(file, R_OK);
}

static void places(struct facts *f)
{
    char file[SMG_PATH_MAX];
    int there = in_path("gnuplot", file);
    const char *data = getenv("SMARTGEN_DATA") ? "set SMARTGEN_DATA to a folder of data files, or unset it: it is what names this one"
                                               : "set SMARTGEN_DATA";

    add(f, "Programs", "gnuplot", there, "figures", "install gnuplot-nox", "%.180s", there ? file : "not in PATH");
    add(f, "Folders", "data", has_data(), "everything", data, "%.180s", smg_data_dir());
    add(f, "Folders", "plots", !access(smg_plots_dir(), R_OK), "figures", "set SMARTGEN_PLOTS", "%.180s", smg_plots_dir());
    add(f, "Folders", "experiments", !access(smg_sweeps_dir(), R_OK), "figures", "set SMARTGEN_EXPERIMENTS", "%.180s",
        smg_sweeps_dir());
}

/* ---- Output ---- */

static void print_remedies(const struct facts *f, int optional_ones, const char *heading)
{
    const char *above = heading;

    for (size_t i = 0; i < f->n; i++) {
        const struct fact *x = &f->fact[i];
        if (!x->remedy || x->optional != optional_ones)
            continue;
        if (above)
            printf("\n%s\n", above);
        above = NULL;
        printf("  %-12s %s\n               for %s\n", x->name, x->remedy, x->gains);
    }
    if (above && !optional_ones)
        printf("\nNothing is missing.\n");
}

static void print_table(const struct facts *f)
{
    const char *group = "";
    size_t wide = 0, n;

    for (size_t i = 0; i < f->n; i++) {
        n = strlen(f->fact[i].found);
        wide = n > wide && n <= 48 ? n : wide;
    }
    for (size_t i = 0; i < f->n; i++) {
        const struct fact *x = &f->fact[i];
        if (strcmp(group, x->group))
            printf("\n%s\n", x->group);
        group = x->group;
        printf("  %-12s %-4s %-*s  %s\n", x->name, x->there ? "yes" : x->optional ? "-" : "no", (int)wide, x->found, x->gains);
    }
    print_remedies(f, 0, "For what is missing (names of Debian packages)");
    print_remedies(f, 1, "Not needed here today (-)");
}

static int print_json(const struct facts *f, const struct utsname *u)
{
    json_t *all = json_array(), *j;
    int bad = !all;

    for (size_t i = 0; i < f->n && !bad; i++) {
        const struct fact *x = &f->fact[i];
        bad = json_array_append_new(all, json_pack("{s:s, s:s, s:b, s:b, s:s, s:s, s:s?}", "group", x->group, "name", x->name,
                                                   "there", x->there, "optional", x->optional, "found", x->found, "for", x->gains, "remedy", x->remedy));
    }
    j = json_pack("{s:s, s:s, s:s, s:s, s:o}", "version", PACKAGE_VERSION, "system", u->sysname, "release", u->release, "machine",
                  u->machine, "facts", all);
    bad = bad || !j || json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER) || printf("\n") < 0;
    json_decref(j);
    return bad;
}

int smg_cmd_doctor(const struct smg_args *a)
{
    struct utsname u;
    struct facts f;
    int has_rdma, bad = 0;

    f.n = 0;
    memset(&u, 0, sizeof u);
    uname(&u);
    libraries(&f);
    has_rdma = rdma(&f);
    gpu(&f);
    limits(&f, has_rdma);
    places(&f);
    if (a->json) {
        bad = print_json(&f, &u);
    } else {
        printf("smartgen %s on %s %s %s\n", PACKAGE_VERSION, u.sysname, u.release, u.machine);
        print_table(&f);
    }
    return bad || !has_data() ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}

/* smartgen list, doctor: what is built in, and what this machine offers. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_VERBS
#include <infiniband/verbs.h>
#endif

#include "cli/cli.h"
#include "core/rank.h"
#include "core/scheme.h"
#include "emu/fabric.h"
#include "experiments/figures.h"
#include "sim/engine.h"
#include "traces/scenario.h"
#include "traces/world.h"

/* ---- list ---- */

static int list_files(const char *kind)
{
    char **names = NULL;

    if (smg_names_list(kind, &names))
        return SMG_EXIT_FAILED;
    for (size_t i = 0; names[i]; i++)
        printf("%s\n", names[i]);
    smg_names_free(names);
    return SMG_EXIT_OK;
}

static void list_schemes(void)
{
    for (size_t i = 0; smg_schemes[i]; i++)
        printf("%-14s %s\n", smg_schemes[i]->name, smg_schemes[i]->doc);
}

static void list_rankings(void)
{
    for (size_t i = 0; smg_rank_types[i]; i++)
        printf("%-14s %s\n", smg_rank_types[i]->name, smg_rank_types[i]->doc);
}

static void list_engines(void)
{
    for (size_t i = 0; smg_engine_types[i]; i++)
        printf("%-14s %s\n", smg_engine_types[i]->name, smg_engine_types[i]->doc);
}

static void list_selectors(void)
{
    printf("infinigen      partial keys: floor(partial_ratio*d) columns per KV head, rehearsed one layer ahead\n"
           "hata           hash codes: hash_bits per key and KV head, with the key's norm\n"
           "quest          bounds of pages of 16 tokens\n"
           "oracle         exact scores, no metadata\n");
}

static void list_keys(void)
{
    smg_scenario_help(stdout);
}

static const struct {
    const char *kind;
    void (*print)(void);         /* NULL: names of data files */
} kinds[] = {{"models", NULL},          {"gpus", NULL},           {"nics", NULL},           {"hosts", NULL},
             {"workloads", NULL},       {"lengths", NULL},        {"instances", NULL},
             {"schemes", list_schemes}, {"rankings", list_rankings},
             {"selectors", list_selectors}, {"engines", list_engines}, {"keys", list_keys}};

int smg_cmd_list(const struct smg_args *a)
{
    const char *names[sizeof kinds / sizeof kinds[0] + 1] = {NULL}, *near;
    int code = SMG_EXIT_OK;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        names[i] = kinds[i].kind;
        if (strcmp(kinds[i].kind, a->operand[0]))
            continue;
        if (kinds[i].print)
            kinds[i].print();
        else
            code = list_files(kinds[i].kind);
        return fflush(stdout) ? SMG_EXIT_FAILED : code;
    }
    near = smg_nearest(a->operand[0], names);
    fprintf(stderr, "smartgen list: unknown kind '%s'%s%s%s; `smartgen list --help` names them\n", a->operand[0],
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return SMG_EXIT_USAGE;
}

/* ---- doctor ---- */

static void line(const char *what, int there, const char *found, const char *missing)
{
    printf("%-12s %-4s %s\n", what, there ? "yes" : "no", there ? found : missing);
}

static void doctor_fabric(void)
{
    const struct smg_fabric_type *type = smg_fabric_find("ofi");
    struct smg_fabric_config config = {NULL, NULL, 0, 0};
    struct smg_fabric *f = NULL;
    struct smg_diag diag = {""};
    int status = type ? smg_fabric_open(type, &config, &f, &diag) : SMG_ERR_UNSUPPORTED;

    line("libfabric", type != NULL, "built in", "not built in: install libfabric-dev and configure again, for smartgen emu");
    if (type)
        line("  tcp", !status, "opens on loopback: smartgen emu works", diag.text);
    smg_fabric_close(f);
}

static void doctor_verbs(void)
{
#ifdef HAVE_VERBS
    int n = 0;
    struct ibv_device **devices = ibv_get_device_list(&n);

    line("verbs", 1, "libibverbs is built in", "");
    line("  devices", devices && n > 0, devices && n > 0 ? ibv_get_device_name(devices[0]) : "",
         "none found: no RDMA device on this machine (soft-RoCE needs the rdma_rxe kernel module)");
    if (devices)
        ibv_free_device_list(devices);
#else
    line("verbs", 0, "", "not built in: install libibverbs-dev and configure again, for RDMA devices");
#endif
}

static int in_path(const char *program)
{
    const char *path = getenv("PATH");
    char file[SMG_PATH_MAX];

    while (path && *path) {
        size_t n = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)n, path, program);
        if (!access(file, X_OK))
            return 1;
        path += n + (path[n] == ':');
    }
    return 0;
}

int smg_cmd_doctor(const struct smg_args *a)
{
    (void)a;
    printf("smartgen %s\n", PACKAGE_VERSION);
    line("simgrid", smg_engine_find("simgrid") != NULL, "built in: engine simgrid",
         "not built in: install libsimgrid-dev and configure again; engine native works without");
    doctor_fabric();
    doctor_verbs();
#ifdef HAVE_CUDA
    line("cuda", 1, "toolkit found at build time; no kernels are built yet", "");
#else
    line("cuda", 0, "", "no toolkit at build time: kernels run on the CPU");
#endif
    line("gpu", !access("/dev/nvidia0", F_OK), "device node found", "no NVIDIA device node: nothing here needs one yet");
    line("gnuplot", in_path("gnuplot"), "found: smartgen figures can draw",
         "not in PATH: install gnuplot-nox, for smartgen figures");
    line("data", !access(smg_data_dir(), R_OK), smg_data_dir(), "data folder not found: set SMARTGEN_DATA");
    line("plots", !access(smg_plots_dir(), R_OK), smg_plots_dir(), "plot scripts not found: set SMARTGEN_PLOTS");
    return fflush(stdout) ? SMG_EXIT_FAILED : SMG_EXIT_OK;
}

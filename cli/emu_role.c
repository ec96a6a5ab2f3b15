#include "cli/emu_role.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/run.h"
#include "traces/scenario.h"

enum role { ROLE_ROUTER, ROLE_PREFILL, ROLE_DECODE, ROLE_AUTO };
static const char *const names[] = {"router", "prefill", "decode", "auto"};

static int refuse(const char *text, const char *what)
{
    fprintf(stderr, "smartgen emu: %s%s\n", text, what);
    return SMG_EXIT_USAGE;
}

int smg_emu_role_given(const struct smg_args *a, int *code)
{
    const char *words[SMG_WORDS_MAX], *near;
    size_t n = smg_words("ROLE", words);

    *code = 0;
    if (!a->role || !strcmp(a->role, "all")) {
        if (a->router || a->token_file || a->instance)
            *code = refuse("--router, --instance and --token-file are for ", "--role router, prefill, decode or auto");
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(words[i], a->role))
            continue;
        if (!a->router)
            *code = refuse("--role needs --router HOST:PORT, the address of the run's router; missing for role ", a->role);
        return !*code;
    }
    near = smg_nearest(a->role, words);
    fprintf(stderr, "smartgen emu: --role: expected all, router, prefill, decode or auto, found '%s'%s%s%s\n", a->role,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    *code = SMG_EXIT_USAGE;
    return 0;
}

const char *smg_emu_role_name(const struct smg_world *w, uint32_t instance)
{
    return names[!instance ? ROLE_ROUTER : smg_world_is_prefill(w, instance) ? ROLE_PREFILL : ROLE_DECODE];
}

/* ---- Rank: what the starter of parallel programs says in the environment ---- */

/* -1: not set, or no number. */
static long from_environment(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long x;

    if (!text || !*text)
        return -1;
    errno = 0;
    x = strtol(text, &end, 10);
    return *end || errno || x < 0 ? -1 : x;
}

static int rank_of(const struct smg_world *w, uint16_t *out)
{
    static const struct {
        const char *rank, *size;
    } starters[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                    {"PMIX_RANK", NULL},
                    {"PMI_RANK", "PMI_SIZE"},
                    {"SLURM_PROCID", "SLURM_NTASKS"}};
    long instances = (long)smg_world_instances(w);

    for (size_t i = 0; i < sizeof starters / sizeof starters[0]; i++) {
        long rank = from_environment(starters[i].rank), size = starters[i].size ? from_environment(starters[i].size) : -1;
        if (rank < 0)
            continue;
        if ((size >= 0 && size != instances) || rank >= instances) {
            fprintf(stderr, "smartgen emu: --role auto: the scenario has %ld instances, router included; %s is %ld%s", instances,
                    starters[i].rank, rank, starters[i].size ? "" : "\n");
            if (starters[i].size)
                fprintf(stderr, " of %ld: start %ld processes\n", size, instances);
            return SMG_EXIT_USAGE;
        }
        *out = (uint16_t)rank;
        return 0;
    }
    return refuse("--role auto: neither OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK nor SLURM_PROCID is set: start it by ",
                  "mpirun or srun");
}

static int instance_of(const struct smg_args *a, const struct smg_world *w, uint16_t *out)
{
    int prefill = !strcmp(a->role, names[ROLE_PREFILL]);
    uint32_t first = prefill ? 1 : 1 + w->prefill_instances, n = prefill ? w->prefill_instances : w->decode_instances;

    *out = 0;
    if (!strcmp(a->role, names[ROLE_AUTO]))
        return a->instance ? refuse("--instance: with --role auto ", "the rank decides") : rank_of(w, out);
    if (!strcmp(a->role, names[ROLE_ROUTER]))
        return a->instance ? refuse("--instance: the router is instance 0, ", "leave it out") : 0;
    if (a->instance ? a->instance < first || a->instance >= first + n : n > 1) {
        fprintf(stderr, "smartgen emu: --instance: this scenario's %s instances are %u to %u; ", a->role, first, first + n - 1);
        if (a->instance)
            fprintf(stderr, "found %u\n", a->instance);
        else
            fprintf(stderr, "which one is this?\n");
        return SMG_EXIT_USAGE;
    }
    *out = (uint16_t)(a->instance ? a->instance : first);
    return 0;
}

/* ---- Token ---- */

static int set_token(const char *from, const char *text, size_t bytes, struct smg_token *out)
{
    while (bytes && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r'))
        bytes--;
    if (!bytes || bytes > SMG_TOKEN_BYTES) {
        fprintf(stderr, "smartgen emu: %s: expected a token of 1 to %d bytes, found %zu%s\n", from, SMG_TOKEN_BYTES, bytes,
                bytes > SMG_TOKEN_BYTES ? " or more" : "");
        return SMG_EXIT_USAGE;
    }
    memcpy(out->bytes, text, bytes);
    out->n = (uint32_t)bytes;
    return 0;
}

static int token_of(const struct smg_args *a, struct smg_token *out)
{
    const char *text = getenv("SMARTGEN_TOKEN");
    char room[SMG_TOKEN_BYTES + 3];
    ssize_t n = -1;
    int fd;

    if (!a->token_file && !text)
        return refuse("a run over several hosts needs a secret that its processes share: set SMARTGEN_TOKEN, or give ",
                      "--token-file");
    if (!a->token_file)
        return set_token("SMARTGEN_TOKEN", text, strlen(text), out);
    fd = open(a->token_file, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        n = read(fd, room, sizeof room);
    if (n < 0)
        fprintf(stderr, "smartgen emu: --token-file: %s: %s\n", a->token_file, strerror(errno));
    if (fd >= 0)
        close(fd);
    return n < 0 ? SMG_EXIT_USAGE : set_token(a->token_file, room, (size_t)n, out);
}

int smg_emu_role(const struct smg_args *a, const struct smg_world *w, struct smg_emu_cluster *out)
{
    struct smg_diag diag = {""};
    int code, status;

    memset(out, 0, sizeof *out);
    out->router = a->router;
    code = instance_of(a, w, &out->self);
    code = code ? code : token_of(a, &out->token);
    if (code)
        return code;
    status = smg_run_geometry(w, &out->geometry, &diag);
    return status ? smg_cli_fail(status, &diag) : 0;
}

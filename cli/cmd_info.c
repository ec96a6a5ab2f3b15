/* smartgen list: what is built in. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/rank.h"
#include "core/scheme.h"
#include "sim/engine.h"
#include "traces/scenario.h"
#include "traces/world.h"

/* ---- list ---- */

static int list_files(const char *kind)
{
    const char *variable = getenv("SMARTGEN_DATA");
    char **names = NULL;
    int status = smg_names_list(kind, &names);

    if (status == SMG_ERR_NOMEM)
        return smg_cli_fail(status, NULL);
    if (status) {
        fprintf(stderr, "smartgen list: no data files of %s can be read in %s; %s\n", kind, smg_data_dir(),
                variable && *variable ? "SMARTGEN_DATA names this folder: set it to one of data files, or unset it"
                                      : "set SMARTGEN_DATA to the folder of data files");
        return SMG_EXIT_USAGE;
    }
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

const char *const *smg_list_kinds(void)
{
    static const char *names[sizeof kinds / sizeof kinds[0] + 1];

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        names[i] = kinds[i].kind;
    return names;
}

int smg_cmd_list(const struct smg_args *a)
{
    const char *near;
    int code = SMG_EXIT_OK;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, a->operand[0]))
            continue;
        if (kinds[i].print)
            kinds[i].print();
        else
            code = list_files(kinds[i].kind);
        return code;
    }
    near = smg_nearest(a->operand[0], smg_list_kinds());
    fprintf(stderr, "smartgen list: unknown kind '%s'; %s%s%s\n", a->operand[0],
            near ? "did you mean '" : "`smartgen list --help` names them", near ? near : "", near ? "'?" : "");
    return SMG_EXIT_USAGE;
}

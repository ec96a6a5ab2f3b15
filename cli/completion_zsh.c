/* smartgen completion zsh: one function for compinit, from the same tables as the help. */
#include <string.h>

#include "cli/cli.h"
#include "traces/scenario_keys.h"

/* Inside single quotes, and inside what _arguments and _describe cut at colons and brackets. */
static void put(const char *s, FILE *f)
{
    for (; *s; s++) {
        if (*s == '\'')
            fputs("'\\''", f);
        else if (strchr(":[]\\", *s))
            fprintf(f, "\\%c", *s);
        else
            fputc(*s, f);
    }
}

/* The action for a word of a usage; "" when there is nothing to offer. */
static void put_action(const char *kind, FILE *f)
{
    const char *words[SMG_WORDS_MAX];
    size_t n = smg_words(kind, words);

    if (!strcmp(kind, "SCENARIO"))
        fprintf(f, "_files -g \"*.(yaml|yml)\"");
    else if (!strcmp(kind, "DIR"))
        fprintf(f, "_files -/");
    else if (!strcmp(kind, "FILE"))
        fprintf(f, "_files");
    else if (!strcmp(kind, "KEY=VALUE"))
        fprintf(f, "_smartgen_key");
    if (n)
        fprintf(f, "(");
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s%s", i ? " " : "", words[i]);
    if (n)
        fprintf(f, ")");
}

/* --set may be repeated, everything else excludes itself. */
static void put_option(const struct smg_option *o, FILE *f)
{
    const char *equals = o->value ? "=" : "";

    fprintf(f, "      ");
    if (!strcmp(o->name, "set"))
        fprintf(f, "'*'{-%c,--%s=}'[", o->letter, o->name);
    else if (o->letter)
        fprintf(f, "'(-%c --%s)'{-%c,--%s%s}'[", o->letter, o->name, o->letter, o->name, equals);
    else
        fprintf(f, "'--%s%s[", o->name, equals);
    put(o->doc, f);
    fprintf(f, "]");
    if (o->value) {
        fprintf(f, ":%s:", o->value);
        put_action(strcmp(o->name, "output") ? o->value : "FILE", f);
    }
    fprintf(f, "' \\\n");
}

/* One action for all operands: the first word of the usage that has one. */
static void put_operand(void *arg, const char *kind)
{
    struct {
        FILE *f;
        int done;
    } *at = arg;
    const char *words[SMG_WORDS_MAX];

    if (at->done || (!smg_words(kind, words) && strcmp(kind, "SCENARIO") && strcmp(kind, "DIR") && strcmp(kind, "FILE")))
        return;
    at->done = 1;
    fprintf(at->f, "      '*:%s:", kind);
    put_action(kind, at->f);
    fprintf(at->f, "' \\\n");
}

static void put_commands(FILE *f)
{
    fprintf(f, "    commands=(\n");
    for (const struct smg_command *c = smg_commands; c->name; c++) {
        fprintf(f, "      '%s:", c->name);
        put(c->doc, f);
        fprintf(f, "'\n");
    }
    fprintf(f, "    )\n    _describe -t commands command commands\n    ;;\n  (argument)\n    case $words[1] in\n");
    for (const struct smg_command *c = smg_commands; c->name; c++) {
        struct {
            FILE *f;
            int done;
        } at = {f, 0};
        fprintf(f, "    (%s)\n      _arguments -s \\\n", c->name);
        for (const struct smg_option *o = smg_options; o->name; o++)
            if (smg_command_takes(c, o))
                put_option(o, f);
        smg_usage_words(c->usage, put_operand, &at);
        fprintf(f, "      && return\n      ;;\n");
    }
    fprintf(f, "    esac\n");
}

static void put_keys(FILE *f)
{
    size_t n;
    const struct smg_key *k = smg_keys(&n);
    const char *words[SMG_WORDS_MAX], *names;
    int path;

    fprintf(f, "_smartgen_key() {\n  local key\n  if ! compset -P '*='; then\n    compadd -q -S = --");
    for (size_t i = 0; i < n; i++)
        fprintf(f, " %s", k[i].path);
    fprintf(f, "\n    return\n  fi\n  key=${${IPREFIX%%=}##*=}\n  case $key in\n");
    for (size_t i = 0; i < n; i++) {
        size_t some = smg_key_words(&k[i], words);
        names = smg_key_names(&k[i], &path);
        if (!some && !names && !path)
            continue;
        fprintf(f, "  (%s)", k[i].path);
        for (size_t w = 0; w < some; w++)
            fprintf(f, "%s %s", w ? "" : " compadd --", words[w]);
        if (names)
            fprintf(f, "%s _smartgen_list %s", some ? ";" : "", names);
        fprintf(f, "%s%s ;;\n", path && (some || names) ? ";" : "",
                !path ? "" : names ? " [[ $PREFIX == */* || $PREFIX == .* ]] && _files" : " _files");
    }
    fprintf(f, "  esac\n}\n\n");
}

void smg_completion_zsh(FILE *f)
{
    fprintf(f, "#compdef smartgen\n# zsh completion of smartgen, made by `smartgen completion zsh`.\n\n"
               "_smartgen_list() {\n  compadd -- ${${(f)\"$(_call_program names smartgen list $1 2>/dev/null)\"}%%%% *}\n}\n\n");
    put_keys(f);
    fprintf(f, "_smartgen() {\n  local curcontext=$curcontext state line\n  local -a commands\n  typeset -A opt_args\n\n"
               "  _arguments -C '(- *)'{-h,--help}'[list the commands]' '(- *)--version[what is built in]' \\\n"
               "    '1: :->command' '*:: :->argument' && return\n  case $state in\n  (command)\n");
    put_commands(f);
    fprintf(f, "    ;;\n  esac\n}\n\n_smartgen \"$@\"\n");
}

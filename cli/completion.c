/* smartgen completion: scripts for shells, from the same tables as the help. This file: the choice, and bash. */
#include <string.h>

#include "cli/cli.h"
#include "traces/scenario.h"
#include "traces/scenario_keys.h"

int smg_cmd_completion(const struct smg_args *a)
{
    if (!strcmp(a->operand[0], "bash")) {
        smg_completion_bash(stdout);
    } else if (!strcmp(a->operand[0], "zsh")) {
        smg_completion_zsh(stdout);
    } else {
        fprintf(stderr, "smartgen completion: unknown shell '%s'; there is a script for bash and one for zsh\n", a->operand[0]);
        return SMG_EXIT_USAGE;
    }
    return SMG_EXIT_OK;
}

/* ---- bash. What can be typed somewhere is written as words; one that begins with @ stands for more: @file, @dir, @scenario,
 * @key, @list:KIND. ---- */

static void put_words(const char *const *word, FILE *f)
{
    for (size_t i = 0; word[i]; i++)
        fprintf(f, "%s%s", i ? " " : "", word[i]);
}

static void put_kind(void *arg, const char *kind)
{
    static const char *const at[][2] = {{"SCENARIO", "@scenario"}, {"DIR", "@dir"}, {"FILE", "@file"}, {"KEY", "@key"}};
    const char *words[SMG_WORDS_MAX];

    if (kind[0] >= 'a' && kind[0] <= 'z') { /* meant literally */
        fprintf(arg, "%s ", kind);
        return;
    }
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        if (!strcmp(at[i][0], kind))
            fprintf(arg, "%s ", at[i][1]);
    if (smg_words(kind, words)) {
        put_words(words, arg);
        fprintf(arg, " ");
    }
}

static void put_options(FILE *f)
{
    fprintf(f, "_smartgen_options() # COMMAND\n{\n    case $1 in\n");
    for (const struct smg_command *c = smg_commands; c->name; c++) {
        fprintf(f, "    %s) echo '", c->name);
        for (const struct smg_option *o = smg_options; o->name; o++)
            if (smg_command_takes(c, o))
                fprintf(f, "--%s ", o->name);
        fprintf(f, "' ;;\n");
    }
    fprintf(f, "    esac\n}\n\n");
}

/* -o FILE may be a folder, so files are offered for both. */
static void put_values(FILE *f)
{
    fprintf(f, "_smartgen_value() # OPTION\n{\n    case $1 in\n");
    for (const struct smg_option *o = smg_options; o->name; o++) {
        if (!o->value)
            continue;
        fprintf(f, "    --%s", o->name);
        if (o->letter)
            fprintf(f, " | -%c", o->letter);
        fprintf(f, ") echo '@value ");
        smg_usage_words(strcmp(o->name, "output") ? o->value : "FILE", put_kind, f);
        fprintf(f, "' ;;\n");
    }
    fprintf(f, "    esac\n}\n\n");
}

static void put_operands(FILE *f)
{
    fprintf(f, "_smartgen_operand() # COMMAND WORDS\n{\n    case $1 in\n");
    for (const struct smg_command *c = smg_commands; c->name; c++) {
        int action = !strncmp(c->usage, "ACTION", 6);
        fprintf(f, "    %s) ", c->name);
        if (action) { /* what stands behind the action is for the words after it */
            fprintf(f, "(($2 > 3)) || { echo '");
            put_kind(f, "ACTION");
            fprintf(f, "'; return; }; ");
        }
        fprintf(f, "echo '");
        smg_usage_words(action ? c->usage + 6 : c->usage, put_kind, f);
        fprintf(f, "' ;;\n");
    }
    fprintf(f, "    esac\n}\n\n");
}

static void put_keys(FILE *f)
{
    size_t n;
    const struct smg_key *k = smg_keys(&n);
    const char *words[SMG_WORDS_MAX], *names;
    int path;

    fprintf(f, "_smartgen_keys='");
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s%s", i ? " " : "", k[i].path);
    fprintf(f, "'\n\n_smartgen_key_value() # KEY\n{\n    case $1 in\n");
    for (size_t i = 0; i < n; i++) {
        size_t some = smg_key_words(&k[i], words);
        names = smg_key_names(&k[i], &path);
        if (!some && !names && !path)
            continue;
        fprintf(f, "    %s) echo '", k[i].path);
        put_words(words, f);
        if (names)
            fprintf(f, " @list:%s", names);
        fprintf(f, "%s' ;;\n", path ? " @file" : "");
    }
    fprintf(f, "    esac\n}\n\n");
}

static const char bash_functions[] =
    "# _smartgen_add TYPED GIVEN STANDS WORD...: offers the words that begin with TYPED. GIVEN was typed before them in the\n"
    "# same word, and of it readline has STANDS on the line already.\n"
    "_smartgen_add()\n"
    "{\n"
    "    local typed=$1 given=$2 stands=$3 word\n"
    "    shift 3\n"
    "    for word; do\n"
    "        [[ $word == \"$typed\"* ]] || continue\n"
    "        word=$given$word\n"
    "        COMPREPLY+=(\"${word#\"$stands\"}\")\n"
    "    done\n"
    "}\n"
    "\n"
    "# The same for files; ARGUMENT... goes to compgen.\n"
    "_smartgen_add_files()\n"
    "{\n"
    "    local typed=$1 given=$2 stands=$3 file\n"
    "    shift 3\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    while IFS= read -r file; do\n"
    "        _smartgen_add '' \"$given\" \"$stands\" \"$file\"\n"
    "    done < <(compgen \"$@\" -- \"$typed\")\n"
    "}\n"
    "\n"
    "# _smartgen_offer WHAT TYPED GIVEN STANDS: WHAT is words, or @ words. Beside the names of a list, files are offered for "
    "what looks\n"
    "# like a path, or like no name.\n"
    "_smartgen_offer()\n"
    "{\n"
    "    local what typed=$2 given=$3 stands=$4 key names=\n"
    "    for what in $1; do\n"
    "        case $what in\n"
    "        @value) ;;\n"
    "        @key)\n"
    "            if [[ $typed == *=* ]]; then\n"
    "                key=${typed%%=*}\n"
    "                _smartgen_offer \"$(_smartgen_key_value \"$key\")\" \"${typed#*=}\" \"$given$key=\" \"$stands\"\n"
    "            else\n"
    "                compopt -o nospace 2>/dev/null\n"
    "                for key in $_smartgen_keys; do\n"
    "                    _smartgen_add \"$typed\" \"$given\" \"$stands\" \"$key=\"\n"
    "                done\n"
    "            fi ;;\n"
    "        @list:*)\n"
    "            names=yes\n"
    "            while read -r key _; do\n"
    "                _smartgen_add \"$typed\" \"$given\" \"$stands\" \"$key\"\n"
    "            done < <(\"${COMP_WORDS[0]}\" list \"${what#*:}\" 2>/dev/null) ;;\n"
    "        @scenario)\n"
    "            _smartgen_add_files \"$typed\" \"$given\" \"$stands\" -f -X '!*.yaml'\n"
    "            _smartgen_add_files \"$typed\" \"$given\" \"$stands\" -f -X '!*.yml'\n"
    "            _smartgen_add_files \"$typed\" \"$given\" \"$stands\" -d ;;\n"
    "        @dir) _smartgen_add_files \"$typed\" \"$given\" \"$stands\" -d ;;\n"
    "        @file)\n"
    "            [[ ! $names || $typed == */* || $typed == .* || ${#COMPREPLY[@]} -eq 0 ]] || continue\n"
    "            _smartgen_add_files \"$typed\" \"$given\" \"$stands\" -f ;;\n"
    "        *) _smartgen_add \"$typed\" \"$given\" \"$stands\" \"$what\" ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "\n"
    "# The line is taken apart here, at blanks: readline also cuts at '=' (COMP_WORDBREAKS), so of a word with '=' it replaces\n"
    "# only what follows the last one.\n"
    "_smartgen()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} typed before stands= value\n"
    "    local -a words\n"
    "    COMPREPLY=()\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line != *[[:space:]] ]] || words+=('')\n"
    "    ((${#words[@]} >= 2)) || return 0\n"
    "    typed=${words[${#words[@]} - 1]}\n"
    "    before=${words[${#words[@]} - 2]}\n"
    "    [[ $typed != *=* || $COMP_WORDBREAKS != *=* ]] || stands=${typed%=*}=\n"
    "    if ((${#words[@]} == 2)); then\n"
    "        _smartgen_add \"$typed\" '' \"$stands\" $_smartgen_commands --help --version\n"
    "        return 0\n"
    "    fi\n"
    "    value=$(_smartgen_value \"$before\")\n"
    "    if [[ $typed == --*=* ]]; then\n"
    "        _smartgen_offer \"$(_smartgen_value \"${typed%%=*}\")\" \"${typed#*=}\" \"${typed%%=*}=\" \"$stands\"\n"
    "    elif [[ $value ]]; then\n"
    "        _smartgen_offer \"$value\" \"$typed\" '' \"$stands\"\n"
    "    elif [[ $typed == -* ]]; then\n"
    "        _smartgen_add \"$typed\" '' \"$stands\" $(_smartgen_options \"${words[1]}\")\n"
    "    else\n"
    "        _smartgen_offer \"$(_smartgen_operand \"${words[1]}\" ${#words[@]})\" \"$typed\" '' \"$stands\"\n"
    "    fi\n"
    "    return 0\n"
    "}\n"
    "\n"
    "complete -F _smartgen smartgen\n";

void smg_completion_bash(FILE *f)
{
    const char *words[SMG_WORDS_MAX];

    fprintf(f,
            "# bash completion of smartgen, made by `smartgen completion bash`. What can be typed is written as words; @file,\n"
            "# @dir, @scenario, @key and @list:KIND stand for more; @value says that an option takes a value.\n\n");
    smg_words("COMMAND", words);
    fprintf(f, "_smartgen_commands='");
    put_words(words, f);
    fprintf(f, "'\n\n");
    put_options(f);
    put_values(f);
    put_operands(f);
    put_keys(f);
    fputs(bash_functions, f);
}

/* Expressions over points: one pass asks for the points, a second one computes. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/validation.h"
#include "traces/text.h"

enum { NAME_BYTES = 192, DEPTH_MAX = 32 };

struct parser {
    const char *text, *at;
    struct smg_book *book;
    struct smg_diag *diag;
    int status, depth;
};

static double sum(struct parser *p);

static double fail(struct parser *p, int status, const char *what, const char *name)
{
    if (!p->status)
        p->status =
            smg_diag_set(p->diag, status, "'%s', character %zu: %s%s", p->text, (size_t)(p->at - p->text) + 1, what, name);
    return NAN;
}

static int take(struct parser *p, char c)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
    if (*p->at != c)
        return 0;
    p->at++;
    return 1;
}

static void expect(struct parser *p, char c)
{
    const char what[] = {'\'', c, '\'', '\0'};

    if (!p->status && !take(p, c))
        fail(p, SMG_ERR_PARSE, "expected ", what);
}

/* ---- Points ---- */

/* A name up to ',' or ')', blanks around it left out. */
static void take_name(struct parser *p, char name[NAME_BYTES])
{
    size_t n;

    while (isspace((unsigned char)*p->at))
        p->at++;
    n = strcspn(p->at, ",() \t");
    if (!n || n >= NAME_BYTES) {
        fail(p, SMG_ERR_PARSE, "expected the name of a point", "");
        n = 0;
    }
    memcpy(name, p->at, n);
    name[n] = '\0';
    p->at += n;
}

/* The point that is named next. NULL: it is only asked for, or does not exist. */
static const struct smg_point_result *take_point(struct parser *p)
{
    char name[NAME_BYTES];
    const struct smg_point_outcome *o;
    size_t sweep = 0, point = 0;

    take_name(p, name);
    if (p->status)
        return NULL;
    if (smg_book_find(p->book, name, &sweep, &point, NULL)) {
        fail(p, SMG_ERR_NOT_FOUND, "no sweep has a point ", name);
        return NULL;
    }
    if (!p->book->outcome) {
        p->status = smg_book_want(p->book, sweep, point, p->diag);
        return NULL;
    }
    o = smg_book_outcome(p->book, sweep, point);
    if (o->status)
        p->status = smg_diag_set(p->diag, o->status, "%s", o->diag.text);
    return o->status ? NULL : &o->result;
}

static size_t take_token(struct parser *p)
{
    double t = NAN;

    expect(p, ',');
    if (!p->status)
        t = sum(p);
    /* What is only asked for has no value yet. */
    if (!p->status && !p->book->outcome && isnan(t))
        return 1;
    if (!p->status && !(t >= 1 && t <= SMG_POINT_TOKENS && t == floor(t)))
        fail(p, SMG_ERR_RANGE, "expected a token id in [1, 128]", "");
    return p->status ? 1 : (size_t)t;
}

/* ---- Functions: *p stands behind '(' and is left in front of ')' ---- */

static double gap_of(struct parser *p)
{
    const struct smg_point_result *r = take_point(p);
    size_t t = take_token(p);

    return r ? r->gap_s[t - 1] : NAN;
}

static double ratio_of(struct parser *p)
{
    const struct smg_point_result *r = take_point(p);
    size_t t = take_token(p);

    return r ? r->token_ratio[t - 1] : NAN;
}

static double last_remote(struct parser *p)
{
    const struct smg_point_result *r = take_point(p);
    size_t last = 1;

    for (size_t t = 2; r && t <= r->tokens; t++)
        last = r->token_ratio[t - 1] > 0 ? t : last;
    return (double)last;
}

/* The next point after a comma. */
static const struct smg_point_result *next_point(struct parser *p)
{
    expect(p, ',');
    return p->status ? NULL : take_point(p);
}

static double max_gap_over(struct parser *p)
{
    const struct smg_point_result *of = take_point(p), *a = next_point(p), *b = next_point(p);
    size_t lo = take_token(p), hi = take_token(p);
    double greatest = NAN;

    for (size_t t = lo; of && a && b && t <= hi; t++)
        greatest = fmax(greatest, of->gap_s[t - 1] / fmax(a->gap_s[t - 1], b->gap_s[t - 1]));
    return greatest;
}

static double greatest(struct parser *p)
{
    double x = sum(p);

    while (!p->status && take(p, ','))
        x = fmax(x, sum(p));
    return x;
}

static double least(struct parser *p)
{
    double x = sum(p);

    while (!p->status && take(p, ','))
        x = fmin(x, sum(p));
    return x;
}

static const struct {
    const char *name;
    double (*of)(struct parser *p);
} functions[] = {
    {"gap_s", gap_of}, {"token_ratio", ratio_of}, {"last_remote", last_remote}, {"max_gap_over", max_gap_over}, {"max", greatest},
    {"min", least},
};

static double metric(struct parser *p, const char *name)
{
    for (const struct smg_metric *m = smg_metrics; m->name; m++) {
        const struct smg_point_result *r;
        if (strcmp(m->name, name))
            continue;
        r = take_point(p);
        return r ? smg_metric_of(m, r) : NAN;
    }
    return fail(p, SMG_ERR_NOT_FOUND, "no function or metric is called ", name);
}

static double call(struct parser *p)
{
    char name[NAME_BYTES];
    size_t i, n = 0;
    double x;

    while (n + 1 < sizeof name && (isalnum((unsigned char)p->at[n]) || p->at[n] == '_'))
        n++;
    memcpy(name, p->at, n);
    name[n] = '\0';
    p->at += n;
    expect(p, '(');
    if (p->status)
        return NAN;
    for (i = 0; i < sizeof functions / sizeof functions[0] && strcmp(functions[i].name, name); i++)
        ;
    x = i < sizeof functions / sizeof functions[0] ? functions[i].of(p) : metric(p, name);
    expect(p, ')');
    return x;
}

/* ---- Arithmetic ---- */

static double number(struct parser *p)
{
    char *end;
    double x = strtod(p->at, &end);

    p->at = end;
    return x;
}

static double factor(struct parser *p)
{
    double x = NAN;

    if (++p->depth > DEPTH_MAX)
        return fail(p, SMG_ERR_RANGE, "too deep", "");
    if (take(p, '-'))
        x = -factor(p);
    else if (take(p, '(')) {
        x = sum(p);
        expect(p, ')');
    } else if (isdigit((unsigned char)*p->at)) {
        x = number(p);
    } else if (isalpha((unsigned char)*p->at)) {
        x = call(p);
    } else {
        fail(p, SMG_ERR_PARSE, "expected a number, a function or '('", "");
    }
    p->depth--;
    return x;
}

static double product(struct parser *p)
{
    double x = factor(p);

    while (!p->status) {
        if (take(p, '*'))
            x *= factor(p);
        else if (take(p, '/'))
            x /= factor(p);
        else
            break;
    }
    return x;
}

static double sum(struct parser *p)
{
    double x = p->status ? NAN : product(p);

    while (!p->status) {
        if (take(p, '+'))
            x += product(p);
        else if (take(p, '-'))
            x -= product(p);
        else
            break;
    }
    return x;
}

int smg_expression(const char *text, struct smg_book *b, double *out, struct smg_diag *diag)
{
    struct parser p = {text, text, b, diag, SMG_OK, 0};
    double x = sum(&p);

    if (!p.status && !take(&p, '\0'))
        fail(&p, SMG_ERR_PARSE, "expected an operator, found ", p.at);
    if (!p.status)
        *out = x;
    return p.status;
}

/* Sweep files: points, their names and scenarios. */
#include <math.h>
#include <string.h>

#include "experiments/figure_points.h"
#include "tests/fuzz/scenario.h"

enum { POINTS = 12 };

static void check_point(const struct smg_sweep *s, size_t point)
{
    char name[SMG_SWEEP_NAME * (SMG_SWEEP_AXES + 1)];
    struct smg_scenario scenario;
    struct smg_diag diag = {""};
    int status;

    smg_sweep_name(s, point, name, sizeof name);
    fuzz_must(strlen(name) < sizeof name - 1);
    fuzz_must(smg_sweep_find(s, name) == point);
    if (s->speedup_axis >= 0)
        fuzz_must(smg_sweep_at(s, smg_sweep_reference(s, point), (size_t)s->speedup_axis) ==
                  &s->axis[s->speedup_axis].value[s->speedup_over]);
    status = smg_sweep_scenario(s, point, &scenario, &diag);
    fuzz_told(status, &diag);
    if (!status)
        fuzz_scenario(&scenario);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct smg_book book;
    struct smg_sweep s;
    struct smg_diag diag = {""};
    int status = smg_sweep_read(fuzz_file(0, data, bytes), &s, &diag);

    fuzz_told(status, &diag);
    if (status)
        return 0;
    fuzz_must(s.axes >= 1 && s.axes <= SMG_SWEEP_AXES && smg_sweep_points(&s) >= 1);
    for (size_t i = 0; i < smg_sweep_points(&s) && i < POINTS; i++)
        check_point(&s, i);
    check_point(&s, smg_sweep_points(&s) - 1);
    memset(&book, 0, sizeof book);
    fuzz_must(smg_book_add(&book, &s, &diag) == SMG_OK);
    smg_book_free(&book);
    return 0;
}

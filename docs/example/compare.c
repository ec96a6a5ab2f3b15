/* A program of one's own on libsmartgen: simulates scenario.yaml under several rankings and prints what each is good for. */
#include <smartgen.h>

#include <stdio.h>

/* Mean over the finished requests. */
static double mean(const struct smg_records *r, double (*quantity)(const struct smg_request_record *))
{
    double sum = 0;
    uint32_t i, n = 0;

    for (i = 0; i < r->n_requests; i++) {
        if (r->request[i].status == SMG_REQUEST_FINISHED) {
            sum += quantity(&r->request[i]);
            n++;
        }
    }
    return n > 0 ? sum / n : 0;
}

static void print_row(const char *ranking, const struct smg_records *r)
{
    printf("%-12s %10.4f %10.4f %10.4f %10.3f\n", ranking, mean(r, smg_record_ttft_s), mean(r, smg_record_ttst_s),
           mean(r, smg_record_tbt_mean_s), mean(r, smg_record_on_demand_ratio));
}

static int simulate(const struct smg_world *world, const char *ranking, struct smg_diag *diag)
{
    struct smg_selection *selection = NULL;
    struct smg_sim *sim = NULL;
    int status = smg_selection_create(world, &selection);

    if (status == SMG_OK) {
        status = smg_sim_create(world, smg_engine_find("native"), selection, NULL, &sim);
    }
    if (status == SMG_OK) {
        status = smg_sim_run(sim, diag);
    }
    if (status == SMG_OK) {
        print_row(ranking, smg_sim_records(sim));
    }
    smg_sim_destroy(sim);
    smg_selection_destroy(selection);
    return status;
}

static int run(const char *ranking, struct smg_diag *diag)
{
    struct smg_scenario scenario;
    struct smg_world world;
    const char *sets[1];
    char set[128];
    int status;

    snprintf(set, sizeof(set), "proactive.ranking=%s", ranking);
    sets[0] = set;
    status = smg_scenario_load("scenario.yaml", sets, 1, &scenario, diag);
    if (status != SMG_OK) {
        return status;
    }
    status = smg_world_load(&scenario, &world, diag);
    if (status != SMG_OK) {
        return status;
    }
    status = simulate(&world, ranking, diag);
    smg_world_free(&world);
    return status;
}

int main(void)
{
    static const char *const rankings[] = {"newest", "profile", "sequential", "random"};
    struct smg_diag diag = {""};
    size_t i;
    int status;

    printf("%-12s %10s %10s %10s %10s\n", "ranking", "TTFT s", "TTST s", "TBT s", "on demand");
    for (i = 0; i < sizeof(rankings) / sizeof(rankings[0]); i++) {
        status = run(rankings[i], &diag);
        if (status != SMG_OK) {
            fprintf(stderr, "compare: %s\n", diag.text[0] != '\0' ? diag.text : smg_status_string(status));
            return 1;
        }
    }
    printf("simulated; selections and requests are synthetic\n");
    return 0;
}

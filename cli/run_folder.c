#include "cli/run_folder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int smg_run_folder_file(const struct smg_run_folder *rec, const char *name, char path[SMG_PATH_MAX])
{
    return smg_outdir_file(&rec->dir, name, path);
}

int smg_run_folder_log_paths(const struct smg_run_folder *rec, const char *suffix, char events[SMG_PATH_MAX],
                             char actions[SMG_PATH_MAX])
{
    char name[64];
    int status;

    snprintf(name, sizeof name, "events%s.bin", suffix);
    status = smg_run_folder_file(rec, name, events);
    snprintf(name, sizeof name, "actions%s.bin", suffix);
    return status ? status : smg_run_folder_file(rec, name, actions);
}

int smg_run_folder_open_logs(struct smg_run_folder *rec, const char *suffix, struct smg_diag *diag)
{
    char events[SMG_PATH_MAX], actions[SMG_PATH_MAX];
    int status = smg_run_folder_log_paths(rec, suffix, events, actions);

    return status ? status : smg_log_create(events, actions, &rec->log, diag);
}

int smg_run_folder_close_log(const struct smg_run_folder *rec, struct smg_log_writer *log, struct smg_diag *diag)
{
    struct smg_diag why = {""};
    int status = smg_log_close(log, &why);

    if (status)
        snprintf(diag->text, sizeof diag->text, "%.350s: %.150s", rec->dir.path, why.text);
    return status;
}

int smg_run_folder_wants_log(const struct smg_scenario *s)
{
    return s->records.events || s->records.decisions;
}

int smg_run_folder_open(struct smg_run_folder *rec, const char *output, const struct smg_scenario *s, int one_process,
                        struct smg_diag *diag)
{
    char path[SMG_PATH_MAX];
    int status;

    memset(rec, 0, sizeof *rec);
    if (!output)
        return SMG_OK;
    status = smg_outdir_claim(output, diag);
    if (!status)
        status = smg_outdir_begin(output, &rec->dir, diag);
    if (status)
        return status;
    rec->active = 1;
    if (one_process && smg_run_folder_wants_log(s)) {
        status = smg_run_folder_open_logs(rec, "", diag);
        rec->logging = !status;
    }
    if (!status && one_process && s->records.timeline) {
        status = smg_run_folder_file(rec, "timeline.json", path);
        if (!status)
            status = smg_timeline_create(path, &rec->timeline, diag);
    }
    return status;
}

void smg_run_folder_remove_logs(const struct smg_run_folder *rec, const char *suffix)
{
    char events[SMG_PATH_MAX], actions[SMG_PATH_MAX];

    if (smg_run_folder_log_paths(rec, suffix, events, actions))
        return;
    unlink(events);
    unlink(actions);
}

int smg_run_folder_commit(struct smg_run_folder *rec, const struct smg_run *run, struct smg_diag *diag)
{
    const struct smg_scenario *s = &run->world->scenario;
    struct smg_diag unused;
    int status = SMG_OK, law;

    if (rec->logging)
        status = smg_run_folder_close_log(rec, &rec->log, diag);
    rec->logging = 0;
    if (rec->timeline) {
        int closed;
        smg_timeline_synthetic(rec->timeline, run->world);
        closed = smg_timeline_close(rec->timeline, status ? &unused : diag);
        status = status ? status : closed;
    }
    rec->timeline = NULL;
    if (!rec->active)
        return status;
    law = status ? status : smg_run_write(&rec->dir, run, diag);
    if (law && law != SMG_ERR_CONSERVATION)
        return law;
    if (smg_run_folder_wants_log(s) && !s->records.events)
        smg_run_folder_remove_logs(rec, "");
    status = smg_outdir_commit(&rec->dir, diag);
    rec->active = !!status;
    return status ? status : law;
}

void smg_run_folder_abort(struct smg_run_folder *rec)
{
    struct smg_diag unused;

    if (rec->logging)
        smg_log_close(&rec->log, &unused);
    if (rec->timeline)
        smg_timeline_close(rec->timeline, &unused);
    if (rec->active)
        smg_outdir_abort(&rec->dir);
}

#include "experiments/figure_draw.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"
#include "experiments/figures.h"
#include "experiments/files.h"
#include "traces/data_dir.h"
#include "traces/text.h"

extern char **environ;

const char *smg_plots_dir(void)
{
    static char path[SMG_PATH_MAX];

    return smg_shared_folder("SMARTGEN_PLOTS", "plots", "plots", path);
}

static int run_program(char *const argv[], struct smg_diag *diag)
{
    pid_t pid;
    int how = 0, error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);

    if (error)
        return smg_diag_set(diag, SMG_ERR_NOT_FOUND, "%s: %s (figures need gnuplot)", argv[0], strerror(error));
    while (waitpid(pid, &how, 0) < 0)
        if (errno != EINTR)
            return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", argv[0], strerror(errno));
    if (WIFEXITED(how) && !WEXITSTATUS(how))
        return SMG_OK;
    return smg_diag_set(diag, SMG_ERR_IO, "%s %s: failed with %s %d", argv[0], argv[2], WIFSIGNALED(how) ? "signal" : "exit code",
                        WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
}

/* gnuplot does not say that it could not write: an image that is whole ends as its format does. */
static int check_image(const char *path, struct smg_diag *diag)
{
    static const char svg[] = "</svg>", png[] = "IEND\xae\x42\x60\x82";
    char end[16] = "";
    FILE *f = fopen(path, "r+b");

    if (!f)
        return smg_diag_set(diag, SMG_ERR_IO, "%s: %s", path, strerror(errno));
    if (!fseek(f, -(long)(sizeof end - 1), SEEK_END) && fread(end, 1, sizeof end - 1, f) == sizeof end - 1 &&
        (strstr(end, svg) || !memcmp(end + sizeof end - sizeof png, png, sizeof png - 1)))
        return smg_output_close(f, path, SMG_OK, diag);
    fseek(f, 0, SEEK_END);
    for (int i = 0; i < 65536; i++)
        putc(0, f); /* fails when the disk is full */
    return smg_output_close(f, path, SMG_OK, diag) ? SMG_ERR_IO
                                                   : smg_diag_set(diag, SMG_ERR_IO, "%s: gnuplot did not finish it", path);
}

int smg_gnuplot(const struct smg_outdir *o, const char *script, const char *data, const char *image, const char *layout,
                struct smg_diag *diag)
{
    char program[] = SMG_GNUPLOT, option[] = "-c";
    char script_path[SMG_PATH_MAX], data_path[SMG_PATH_MAX], image_path[SMG_PATH_MAX], plots[SMG_PATH_MAX], how[16];
    char *argv[] = {program, option, script_path, data_path, image_path, how, plots, NULL};
    int status;

    if (smg_path_join(smg_plots_dir(), script, script_path) || smg_path_join(smg_plots_dir(), "", plots) ||
        smg_outdir_file(o, data, data_path) || smg_outdir_file(o, image, image_path))
        return smg_diag_set(diag, SMG_ERR_RANGE, "%s: name is too long", o->path);
    snprintf(how, sizeof how, "%s", layout);
    status = run_program(argv, diag);
    return status ? status : check_image(image_path, diag);
}

int smg_figure_images(const struct smg_outdir *o, const char *id, const char *data, struct smg_diag *diag)
{
    static const char *const kind[][2] = {{".svg", "wide"}, {"-narrow.svg", "narrow"}, {".png", "wide"}};
    char script[SMG_NAME_MAX], image[SMG_NAME_MAX + 16];
    int status = SMG_OK;

    snprintf(script, sizeof script, "%.48s.gp", id);
    for (size_t i = 0; i < sizeof kind / sizeof kind[0] && !status; i++) {
        snprintf(image, sizeof image, "%.48s%s", id, kind[i][0]);
        status = smg_gnuplot(o, script, data, image, kind[i][1], diag);
    }
    return status;
}

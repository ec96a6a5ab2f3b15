/* The harness where instances run on other hosts: nothing is shared but the socket that each has joined over. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/harness_priv.h"
#include "emu/pipe.h"

/* Between two signs of life, s: many within the shortest time-out. */
static const double beat_every_s = 0.02;
#define NO_FILE UINT64_MAX

int smg_harness_of_router(uint32_t instances, const int *fd, struct smg_harness *out)
{
    int status = smg_harness_make(instances, 0, out);

    for (uint32_t i = 1; i < instances && !status; i++)
        out->fd[i] = fd[i];
    return status;
}

int smg_harness_of_instance(uint32_t instances, uint16_t self, int fd, struct smg_harness *out)
{
    int status = smg_harness_make(instances, self, out);

    if (!status)
        out->fd[0] = fd;
    return status;
}

/* ---- Signs of life ---- */

void smg_harness_send_beat(struct smg_harness *h)
{
    double now_s = smg_pipe_now_s();
    const uint32_t kind = SMG_HARNESS_BEAT;

    if (now_s - h->beat_s < beat_every_s)
        return;
    h->beat_s = now_s;
    /* Four bytes go whole or not at all while the router keeps reading; one that does not has other troubles. */
    (void)send(h->fd[0], &kind, sizeof kind, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void smg_harness_take_beats(struct smg_harness *h, uint16_t instance)
{
    uint32_t kind = 0;

    while (recv(h->fd[instance], &kind, sizeof kind, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof kind &&
           kind == SMG_HARNESS_BEAT) {
        if (recv(h->fd[instance], &kind, sizeof kind, MSG_DONTWAIT) != (ssize_t)sizeof kind)
            return;
        h->beats[instance]++;
    }
}

/* ---- Files ---- */

static int send_bytes(struct smg_harness *h, int file, uint64_t bytes)
{
    char room[65536];
    int status = SMG_OK;

    while (bytes && !status) {
        ssize_t n = read(file, room, bytes < sizeof room ? (size_t)bytes : sizeof room);
        if (n <= 0)
            return SMG_ERR_IO; /* shorter than it was: the parent finds the end of the connection */
        status = smg_pipe_put(h->fd[0], room, (size_t)n, INFINITY);
        bytes -= (uint64_t)n;
    }
    return status;
}

int smg_harness_put_file(struct smg_harness *h, const char *path)
{
    int file = path[0] ? open(path, O_RDONLY | O_CLOEXEC) : -1, status;
    struct stat s;
    uint64_t bytes = file >= 0 && !fstat(file, &s) && S_ISREG(s.st_mode) ? (uint64_t)s.st_size : NO_FILE;

    status = smg_pipe_put(h->fd[0], &bytes, sizeof bytes, INFINITY);
    if (!status && bytes != NO_FILE)
        status = send_bytes(h, file, bytes);
    if (file >= 0)
        close(file);
    return status;
}

static int take_bytes(struct smg_harness *h, uint16_t instance, FILE *file, uint64_t bytes, double end_s)
{
    char room[65536];
    int status = SMG_OK, full = 0;

    while (bytes && !status) {
        size_t n = bytes < sizeof room ? (size_t)bytes : sizeof room;
        status = smg_pipe_get(h->fd[instance], room, n, end_s);
        if (!status && file && !full)
            full = fwrite(room, 1, n, file) != n; /* the rest is still taken */
        bytes -= n;
    }
    return status ? status : full ? SMG_ERR_IO : SMG_OK;
}

int smg_harness_get_file(struct smg_harness *h, uint16_t instance, const char *path, double end_s)
{
    uint64_t bytes = NO_FILE;
    FILE *file = NULL;
    int status = smg_pipe_get(h->fd[instance], &bytes, sizeof bytes, end_s), unopened = 0;

    if (status || bytes == NO_FILE)
        return status;
    if (path[0]) {
        file = fopen(path, "wbe");
        unopened = !file;
    }
    status = take_bytes(h, instance, file, bytes, end_s);
    if (file && fclose(file) && !status)
        status = SMG_ERR_IO;
    return status ? status : unopened ? SMG_ERR_IO : SMG_OK;
}

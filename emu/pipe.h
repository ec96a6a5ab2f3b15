/* Whole messages between the harness and its children, over stream sockets, each with a time by which it must be through: the
 * other side may be stopped, or ended in the middle of one. All return SMG_OK; SMG_ERR_LOST when the other side is gone;
 * SMG_ERR_DEADLOCK when end_s came first (a part may have gone through then). */
#ifndef SMG_EMU_PIPE_H
#define SMG_EMU_PIPE_H

#include <stddef.h>
#include <stdint.h>

/* The monotonic clock that end_s is of, s. INFINITY: no end. */
double smg_pipe_now_s(void);
int smg_pipe_put(int fd, const void *data, size_t bytes, double end_s);
int smg_pipe_get(int fd, void *data, size_t bytes, double end_s);

/* A message begins with its kind. */
int smg_pipe_put_kind(int fd, uint32_t kind, double end_s);
/* Takes the next message's kind. SMG_ERR_LOST: it is another, which is left where it is. */
int smg_pipe_get_kind(int fd, uint32_t wanted, double end_s);

#endif

/* How the processes of a cluster on several hosts find each other: every instance dials the router over TCP, says who it is, and
 * the connection then serves as its pipe (emu/harness.h). Messages have a fixed length, little-endian; a hello is checked whole
 * before any of it is believed. Everything else goes over that pipe: fabric addresses, memory keys, the start, reports. */
#ifndef SMG_EMU_JOIN_H
#define SMG_EMU_JOIN_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { SMG_TOKEN_BYTES = 64, SMG_JOIN_HELLO_BYTES = 96, SMG_JOIN_ANSWER_BYTES = 24 };

/* What all processes of a run share and nobody else knows; may be empty (0 bytes). Never printed. */
struct smg_token {
    uint8_t bytes[SMG_TOKEN_BYTES];
    uint32_t n;
};

struct smg_join_hello {
    uint16_t instance; /* 1.. */
    uint64_t geometry; /* digest of the scenario, the model, the requests and the layout of messages */
    struct smg_token token;
};

enum smg_join_answer {
    SMG_JOIN_WELCOME = 1,
    SMG_JOIN_STRANGER, /* wrong token */
    SMG_JOIN_GEOMETRY, /* another scenario, model or workload, or another build of the program */
    SMG_JOIN_INSTANCE, /* there is no such instance */
    SMG_JOIN_TAKEN,    /* it is here already */
    SMG_JOIN_ANSWERS
};

void smg_join_hello_encode(const struct smg_join_hello *hello, uint8_t out[SMG_JOIN_HELLO_BYTES]);
/* SMG_ERR_PROTOCOL: not a hello of this version, or a field out of its range. */
int smg_join_hello_decode(const uint8_t in[SMG_JOIN_HELLO_BYTES], struct smg_join_hello *out);
void smg_join_answer_encode(enum smg_join_answer answer, uint8_t out[SMG_JOIN_ANSWER_BYTES]);
int smg_join_answer_decode(const uint8_t in[SMG_JOIN_ANSWER_BYTES], enum smg_join_answer *out);

/* In a time that depends on neither content. */
int smg_token_equal(const struct smg_token *a, const struct smg_token *b);

/* What the router answers. here: [instances], whether an instance has joined. The token is looked at first: a stranger learns
 * nothing else. */
enum smg_join_answer smg_join_judge(const struct smg_join_hello *hello, const struct smg_token *token, uint64_t geometry,
                                    uint32_t instances, const uint8_t *here);

/* "HOST:PORT", "[V6]:PORT"; for listening also ":PORT" (every address of this host). *fd_out: a listening socket, close-on-exec.
 */
int smg_join_listen(const char *address, int *fd_out, struct smg_diag *diag);
/* Port a listening socket has (address HOST:0 lets the system choose). */
uint16_t smg_join_port(int fd);
/* Router: waits until every instance 1..instances-1 has joined; fd[i] becomes its connection (fd[] is all -1 before). Connections
 * that do not send a hello in 5 s, or a wrong one, are answered and closed, whoever else waits. SMG_ERR_DEADLOCK: not all came
 * within `seconds`; diag names who is missing and the last refusal. SMG_ERR_INTERRUPTED: stop() was non-zero (NULL: nobody can).
 * fd[] holds what has joined in any case. */
int smg_join_gather(int listening, uint32_t instances, const struct smg_token *token, uint64_t geometry, double seconds,
                    int (*stop)(void), int *fd, struct smg_diag *diag);
/* Instance: dials until the router answers, for up to `seconds`. SMG_ERR_INVALID: refused, diag says why. stop as above. */
int smg_join_dial(const char *address, const struct smg_join_hello *hello, double seconds, int (*stop)(void), int *fd_out,
                  struct smg_diag *diag);

#endif

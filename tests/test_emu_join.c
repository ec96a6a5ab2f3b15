/* Joining a cluster: messages that are not exactly right are refused, the router takes each instance once and strangers never,
 * and nobody that is silent keeps the others waiting. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "emu/join.h"
#include "emu/pipe.h"

static struct smg_token token_of(const char *text)
{
    struct smg_token t = {.n = (uint32_t)strlen(text)};

    memcpy(t.bytes, text, t.n);
    return t;
}

/* ---- Messages ---- */

static void hello_round_trip(void **state)
{
    struct smg_join_hello in = {.instance = 513, .geometry = UINT64_C(0x123456789abcdef0), .token = token_of("secret")}, out;
    uint8_t bytes[SMG_JOIN_HELLO_BYTES];

    (void)state;
    smg_join_hello_encode(&in, bytes);
    assert_int_equal(smg_join_hello_decode(bytes, &out), SMG_OK);
    assert_int_equal(out.instance, in.instance);
    assert_true(out.geometry == in.geometry);
    assert_true(smg_token_equal(&out.token, &in.token));
    in.token = (struct smg_token){.n = 0};
    smg_join_hello_encode(&in, bytes);
    assert_int_equal(smg_join_hello_decode(bytes, &out), SMG_OK);
    assert_int_equal(out.token.n, 0);
}

/* Any byte but those of instance, geometry and token makes it no hello. */
static void altered_hello(void **state)
{
    struct smg_join_hello in = {.instance = 1, .geometry = 7, .token = token_of("secret")}, out;
    uint8_t bytes[SMG_JOIN_HELLO_BYTES];

    (void)state;
    for (size_t at = 0; at < SMG_JOIN_HELLO_BYTES; at++) {
        int free_to_vary = at == 12 || at == 13 || (at >= 16 && at < 24) || (at >= 32 && at < 38);
        smg_join_hello_encode(&in, bytes);
        bytes[at] ^= 0x40;
        assert_int_equal(smg_join_hello_decode(bytes, &out), free_to_vary ? SMG_OK : SMG_ERR_PROTOCOL);
    }
    in.instance = 0;
    smg_join_hello_encode(&in, bytes);
    assert_int_equal(smg_join_hello_decode(bytes, &out), SMG_ERR_PROTOCOL);
}

static void answers(void **state)
{
    uint8_t bytes[SMG_JOIN_ANSWER_BYTES];
    enum smg_join_answer out;

    (void)state;
    for (int a = 0; a <= SMG_JOIN_ANSWERS; a++) {
        int good = a >= SMG_JOIN_WELCOME && a < SMG_JOIN_ANSWERS;
        smg_join_answer_encode((enum smg_join_answer)a, bytes);
        assert_int_equal(smg_join_answer_decode(bytes, &out), good ? SMG_OK : SMG_ERR_PROTOCOL);
        if (good)
            assert_int_equal(out, a);
    }
    smg_join_answer_encode(SMG_JOIN_WELCOME, bytes);
    for (size_t at = 0; at < SMG_JOIN_ANSWER_BYTES; at++) {
        bytes[at] ^= 0x40;
        assert_int_equal(smg_join_answer_decode(bytes, &out), SMG_ERR_PROTOCOL);
        bytes[at] ^= 0x40;
    }
}

static void tokens(void **state)
{
    struct smg_token a = token_of("abc"), b = token_of("abd"), c = token_of("ab"), none = {.n = 0},
                     long_a = token_of("0123456789012345678901234567890123456789012345678901234567890123"), long_b = long_a;

    (void)state;
    long_b.bytes[SMG_TOKEN_BYTES - 1]++;
    assert_true(smg_token_equal(&a, &a) && smg_token_equal(&none, &none) && smg_token_equal(&long_a, &long_a));
    assert_false(smg_token_equal(&a, &b) || smg_token_equal(&a, &c) || smg_token_equal(&a, &none));
    assert_false(smg_token_equal(&long_a, &long_b));
}

static void judged(void **state)
{
    const struct smg_token right = token_of("right"), wrong = token_of("wrong");
    const uint8_t here[4] = {0, 0, 1, 0};
    struct smg_join_hello h = {.instance = 1, .geometry = 7, .token = right};

    (void)state;
    assert_int_equal(smg_join_judge(&h, &right, 7, 4, here), SMG_JOIN_WELCOME);
    h.instance = 2;
    assert_int_equal(smg_join_judge(&h, &right, 7, 4, here), SMG_JOIN_TAKEN);
    h.instance = 4;
    assert_int_equal(smg_join_judge(&h, &right, 7, 4, here), SMG_JOIN_INSTANCE);
    h.geometry = 8;
    assert_int_equal(smg_join_judge(&h, &right, 7, 4, here), SMG_JOIN_GEOMETRY);
    h.token = wrong; /* a stranger does not learn that the geometry is wrong too */
    assert_int_equal(smg_join_judge(&h, &right, 7, 4, here), SMG_JOIN_STRANGER);
}

/* ---- Over TCP ---- */

struct dialler {
    char address[32];
    struct smg_join_hello hello;
    int status, fd;
    struct smg_diag diag;
};

static void *dial(void *arg)
{
    struct dialler *d = arg;

    d->fd = -1;
    d->status = smg_join_dial(d->address, &d->hello, 10, NULL, &d->fd, &d->diag);
    return NULL;
}

static struct dialler dialler_of(uint16_t port, uint16_t instance, uint64_t geometry, const char *token)
{
    struct dialler d = {.hello = {.instance = instance, .geometry = geometry, .token = token_of(token)}};

    snprintf(d.address, sizeof d.address, "127.0.0.1:%u", port);
    return d;
}

static int listening(uint16_t *port)
{
    struct smg_diag diag = {""};
    int fd = -1;

    assert_int_equal(smg_join_listen("127.0.0.1:0", &fd, &diag), SMG_OK);
    *port = smg_join_port(fd);
    assert_true(*port);
    return fd;
}

struct router {
    int listening, fd[4], status;
    struct smg_token token;
    struct smg_diag diag;
};

static void *gather(void *arg)
{
    struct router *r = arg;

    r->status = smg_join_gather(r->listening, 4, &r->token, 7, 120, NULL, r->fd, &r->diag);
    return NULL;
}

static int connected(int router)
{
    struct sockaddr_storage a;
    socklen_t bytes = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(getsockname(router, (struct sockaddr *)&a, &bytes), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, bytes), 0);
    return fd;
}

static void refused(uint16_t port, uint16_t instance, uint64_t geometry, const char *token, const char *why)
{
    struct dialler d = dialler_of(port, instance, geometry, token);

    dial(&d);
    assert_int_equal(d.status, SMG_ERR_INVALID);
    assert_non_null(strstr(d.diag.text, why));
    assert_null(strstr(d.diag.text, "s3cret"));
}

/* Three instances among a silent stranger, one of garbage, one with a wrong token, and others that do not belong. What the ends
 * say to each other over fd[i] is theirs. */
static void gathered(void **state)
{
    uint16_t port;
    struct router r = {.listening = listening(&port), .fd = {-1, -1, -1, -1}, .token = token_of("s3cret"), .diag = {""}};
    struct dialler d[3];
    pthread_t thread;
    uint8_t noise[SMG_JOIN_HELLO_BYTES];
    int silent = connected(r.listening), garbage = connected(r.listening);
    char c = 0;

    (void)state;
    memset(noise, 0xa5, sizeof noise);
    assert_int_equal(smg_pipe_put(garbage, noise, sizeof noise, smg_pipe_now_s() + 60), SMG_OK);
    assert_int_equal(pthread_create(&thread, NULL, gather, &r), 0);
    for (uint16_t i = 0; i < 3; i++) {
        d[i] = dialler_of(port, (uint16_t)(3 - i), 7, "s3cret");
        if (i == 2) { /* before the last one comes */
            refused(port, 1, 7, "S3cret", "token");
            refused(port, 1, 7, "", "token");
            refused(port, 1, 8, "s3cret", "another scenario");
            refused(port, 9, 7, "s3cret", "no such instance");
            refused(port, 3, 7, "s3cret", "joined already");
        }
        dial(&d[i]);
        assert_int_equal(d[i].status, SMG_OK);
    }
    pthread_join(thread, NULL);
    assert_int_equal(r.status, SMG_OK);
    assert_int_equal(smg_pipe_put(r.fd[2], "x", 1, smg_pipe_now_s() + 60), SMG_OK);
    assert_int_equal(smg_pipe_get(d[1].fd, &c, 1, smg_pipe_now_s() + 60), SMG_OK);
    assert_int_equal(c, 'x');
    for (int i = 0; i < 3; i++) {
        close(d[i].fd);
        close(r.fd[i + 1]);
    }
    close(silent);
    close(garbage);
    close(r.listening);
}

/* Nobody comes: the router says who is missing. */
static void missing(void **state)
{
    uint16_t port;
    int router = listening(&port), fd[3] = {-1, -1, -1}, stranger = connected(router);
    struct smg_token token = token_of("s3cret");
    struct smg_diag diag = {""};

    (void)state;
    assert_int_equal(smg_join_gather(router, 3, &token, 7, 0.1, NULL, fd, &diag), SMG_ERR_DEADLOCK);
    assert_non_null(strstr(diag.text, "0 of 2 instances"));
    assert_non_null(strstr(diag.text, "missing: 1 2"));
    close(stranger);
    close(router);
}

static int at_once(void)
{
    return 1;
}

/* Who waits can be interrupted. */
static void interrupted(void **state)
{
    uint16_t port;
    int router = listening(&port), fd[3] = {-1, -1, -1}, one = -1;
    struct smg_token token = token_of("s3cret");
    struct smg_join_hello h = {.instance = 1};
    struct smg_diag diag = {""};

    (void)state;
    assert_int_equal(smg_join_gather(router, 3, &token, 7, 600, at_once, fd, &diag), SMG_ERR_INTERRUPTED);
    assert_int_equal(smg_join_dial("127.0.0.1:1", &h, 600, at_once, &one, &diag), SMG_ERR_INTERRUPTED);
    close(router);
}

static void bad_addresses(void **state)
{
    static const char *const bad[] = {"", "host", "host:", ":x", "1.2.3.4:70000", "::1:80", "a:b:1", "[::1]"};
    struct smg_join_hello h = {.instance = 1};
    struct smg_diag diag;
    int fd = -1;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(smg_join_listen(bad[i], &fd, &diag), SMG_ERR_INVALID);
        assert_int_equal(smg_join_dial(bad[i], &h, 0.1, NULL, &fd, &diag), SMG_ERR_INVALID);
        assert_non_null(strstr(diag.text, "HOST:PORT"));
    }
    assert_int_equal(smg_join_dial(":80", &h, 0.1, NULL, &fd, &diag), SMG_ERR_INVALID);
    for (size_t i = 0; i < 2; i++) { /* at once, however long it may take */
        assert_int_equal(smg_join_dial(i ? "127.0.0.1:000" : "localhost:0", &h, 3600, NULL, &fd, &diag), SMG_ERR_INVALID);
        assert_non_null(strstr(diag.text, "expected a port from 1 to 65535"));
    }
    assert_int_equal(smg_join_dial("127.0.0.1:1", &h, 0.2, NULL, &fd, &diag), SMG_ERR_DEADLOCK);
    assert_non_null(strstr(diag.text, "no router answers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_round_trip), cmocka_unit_test(altered_hello), cmocka_unit_test(answers),
        cmocka_unit_test(tokens),           cmocka_unit_test(judged),        cmocka_unit_test(gathered),
        cmocka_unit_test(missing),          cmocka_unit_test(interrupted),   cmocka_unit_test(bad_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

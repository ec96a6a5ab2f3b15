#include "traces/selection_recording.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/importance_bytes.h"
#include "traces/text.h"

struct recorded_request {
    uint32_t tokens, steps, k, row_bytes;
    uint64_t offset;
};

struct smg_recording {
    char path[SMG_PATH_MAX];
    const unsigned char *data; /* mapped */
    size_t bytes;
    uint32_t requests, layers, kv_heads, selecting;
    uint8_t selects[SMG_MAX_LAYERS];
    uint32_t place[SMG_MAX_LAYERS]; /* among the selecting layers */
    int synthetic;
    struct recorded_request *request; /* [requests] */
};

static int map_file(struct smg_recording *r, struct smg_diag *diag)
{
    int fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe nobody is waited for: it cannot be mapped */
    struct stat info;
    void *at;

    if (fd < 0 || fstat(fd, &info) != 0) {
        smg_diag_set(diag, SMG_ERR_IO, "%.200s: cannot open: %s", r->path, strerror(errno));
        goto err_close;
    }
    if (S_ISDIR(info.st_mode)) {
        smg_diag_set(diag, SMG_ERR_IO, "%.200s: cannot open: %s", r->path, strerror(EISDIR));
        goto err_close;
    }
    if (!S_ISREG(info.st_mode)) {
        smg_diag_set(diag, SMG_ERR_IO, "%.200s: expected a file, found a pipe, socket or device", r->path);
        goto err_close;
    }
    r->bytes = (size_t)info.st_size;
    at = r->bytes > 0 ? mmap(NULL, r->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (at == MAP_FAILED) {
        smg_diag_set(diag, SMG_ERR_IO, "%.200s: cannot map %zu bytes: %s", r->path, r->bytes,
                     r->bytes ? strerror(errno) : "empty");
        goto err_close;
    }
    r->data = at;
    close(fd);
    return SMG_OK;

err_close:
    if (fd >= 0) {
        close(fd);
    }
    return SMG_ERR_IO;
}

static int read_counts(struct smg_recording *r, struct smg_byte_reader *in, uint32_t *header_bytes)
{
    uint32_t version, zero;
    int status = smg_get_u32(in, "version", &version);

    if (status == SMG_OK && version != SMG_RECORDING_VERSION) {
        return smg_byte_reader_fail(in, "version", "found %u, expected %u", version, SMG_RECORDING_VERSION);
    }
    if (status != SMG_OK || (status = smg_get_u32(in, "header_bytes", header_bytes)) != SMG_OK ||
        (status = smg_get_u32(in, "requests", &r->requests)) != SMG_OK ||
        (status = smg_get_u32(in, "layers", &r->layers)) != SMG_OK ||
        (status = smg_get_u32(in, "kv_heads", &r->kv_heads)) != SMG_OK ||
        (status = smg_get_u32(in, "selecting", &r->selecting)) != SMG_OK ||
        (status = smg_get_u32(in, "reserved", &zero)) != SMG_OK) {
        return status;
    }
    if (r->layers == 0 || r->layers > SMG_MAX_LAYERS) {
        return smg_byte_reader_fail(in, "layers", "found %u, expected 1 to %u", r->layers, SMG_MAX_LAYERS);
    }
    if (r->requests == 0 || r->requests > in->bytes / 32 || r->kv_heads == 0) {
        return smg_byte_reader_fail(in, "requests", "%u requests and %u heads do not fit the file", r->requests, r->kv_heads);
    }
    return SMG_OK;
}

static int read_layers(struct smg_recording *r, struct smg_byte_reader *in)
{
    const void *at;
    uint32_t layer, n = 0;
    int status = smg_get_bytes(in, "selects", &at, (r->layers + 7) / 8 * 8);

    if (status != SMG_OK) {
        return status;
    }
    memcpy(r->selects, at, r->layers);
    for (layer = 0; layer < r->layers; layer++) {
        r->place[layer] = n;
        n += r->selects[layer] != 0;
    }
    return n == r->selecting ? SMG_OK : smg_byte_reader_fail(in, "selects", "%u layers are marked, expected %u", n, r->selecting);
}

static int read_header(struct smg_recording *r, struct smg_byte_reader *in, uint32_t header_bytes)
{
    const void *at;
    json_error_t error;
    json_t *root;
    int status = smg_get_bytes(in, "header", &at, header_bytes);

    if (status != SMG_OK) {
        return status;
    }
    root = json_loadb(at, header_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        json_decref(root);
        return smg_byte_reader_fail(in, "header", "not a JSON object: %.100s", error.text);
    }
    r->synthetic = json_is_true(json_object_get(root, "synthetic"));
    json_decref(root);
    return SMG_OK;
}

static int read_request(struct smg_recording *r, struct smg_byte_reader *in, uint32_t i)
{
    struct recorded_request *q = &r->request[i];
    uint64_t zero, rows;
    int status;

    if ((status = smg_get_u32(in, "tokens", &q->tokens)) != SMG_OK || (status = smg_get_u32(in, "steps", &q->steps)) != SMG_OK ||
        (status = smg_get_u32(in, "k", &q->k)) != SMG_OK || (status = smg_get_u32(in, "row_bytes", &q->row_bytes)) != SMG_OK ||
        (status = smg_get_u64(in, "offset", &q->offset)) != SMG_OK || (status = smg_get_u64(in, "reserved", &zero)) != SMG_OK) {
        return status;
    }
    if (q->tokens == 0 || q->steps == 0 || q->k == 0 || q->k > q->tokens) {
        return smg_byte_reader_fail(in, "request", "request %u: %u tokens, %u steps, rows of %u entries", i, q->tokens, q->steps,
                                    q->k);
    }
    if (q->row_bytes != ((uint64_t)q->tokens + 63) / 64 * 8) {
        return smg_byte_reader_fail(in, "row_bytes", "request %u: found %u, expected 8 ceil(%u / 64)", i, q->row_bytes,
                                    q->tokens);
    }
    rows = (uint64_t)r->selecting * r->kv_heads;
    if (q->offset > in->bytes || (rows > 0 && q->steps > (in->bytes - q->offset) / q->row_bytes / rows)) {
        return smg_byte_reader_fail(in, "offset", "request %u: its rows end behind the file", i);
    }
    return SMG_OK;
}

/* A row that holds more than k entries, or a token behind the prompt, would run over a caller's buffer. */
static int check_rows(const struct smg_recording *r, struct smg_byte_reader *in, uint32_t i)
{
    const struct recorded_request *q = &r->request[i];
    uint64_t row, rows = (uint64_t)q->steps * r->selecting * r->kv_heads;
    uint32_t b, n, used = (q->tokens + 7) / 8;

    for (row = 0; row < rows; row++) {
        const unsigned char *at = r->data + q->offset + row * q->row_bytes;

        for (b = 0, n = 0; b < q->row_bytes; b++) {
            n += (uint32_t)__builtin_popcount(at[b]);
        }
        if (n > q->k) {
            return smg_byte_reader_fail(in, "rows", "request %u: row %llu has %u entries, expected at most %u", i,
                                        (unsigned long long)row, n, q->k);
        }
        for (b = used; b < q->row_bytes && at[b] == 0; b++) {
        }
        if (b < q->row_bytes || (q->tokens % 8 != 0 && at[used - 1] >> q->tokens % 8 != 0)) {
            return smg_byte_reader_fail(in, "rows", "request %u: row %llu marks tokens behind its %u", i, (unsigned long long)row,
                                        q->tokens);
        }
    }
    return SMG_OK;
}

static int read_all(struct smg_recording *r, struct smg_diag *diag)
{
    struct smg_byte_reader in;
    uint32_t header_bytes, i;
    int status = smg_byte_reader_open(r->path, r->data, r->bytes, "KVSR", &in, diag);

    if (status != SMG_OK || (status = read_counts(r, &in, &header_bytes)) != SMG_OK || (status = read_layers(r, &in)) != SMG_OK ||
        (status = read_header(r, &in, header_bytes)) != SMG_OK) {
        return status;
    }
    r->request = calloc(r->requests, sizeof(*r->request));
    if (r->request == NULL) {
        return SMG_ERR_NOMEM;
    }
    for (i = 0; i < r->requests && status == SMG_OK; i++) {
        status = read_request(r, &in, i);
    }
    for (i = 0; i < r->requests && status == SMG_OK; i++) {
        status = check_rows(r, &in, i);
    }
    return status;
}

int smg_recording_open(const char *path, struct smg_recording **out, struct smg_diag *diag)
{
    struct smg_recording *r = calloc(1, sizeof(*r));
    int status;

    if (r == NULL) {
        return SMG_ERR_NOMEM;
    }
    snprintf(r->path, sizeof(r->path), "%s", path);
    status = map_file(r, diag);
    if (status == SMG_OK) {
        status = read_all(r, diag);
    }
    if (status != SMG_OK) {
        smg_recording_close(r);
        return status;
    }
    *out = r;
    return SMG_OK;
}

void smg_recording_close(struct smg_recording *r)
{
    if (r == NULL) {
        return;
    }
    if (r->data != NULL) {
        munmap((void *)(uintptr_t)r->data, r->bytes);
    }
    free(r->request);
    free(r);
}

int smg_recording_synthetic(const struct smg_recording *r)
{
    return r->synthetic;
}

uint32_t smg_recording_requests(const struct smg_recording *r)
{
    return r->requests;
}

uint32_t smg_recording_tokens(const struct smg_recording *r, uint32_t request)
{
    return request < r->requests ? r->request[request].tokens : 0;
}

uint32_t smg_recording_steps(const struct smg_recording *r, uint32_t request)
{
    return request < r->requests ? r->request[request].steps : 0;
}

uint32_t smg_recording_k(const struct smg_recording *r, uint32_t request)
{
    return request < r->requests ? r->request[request].k : 0;
}

uint32_t smg_recording_row(const struct smg_recording *r, uint32_t request, uint32_t step, uint32_t layer, uint32_t head,
                           int32_t *index)
{
    const struct recorded_request *q;
    const unsigned char *at;
    uint32_t b, n = 0;
    uint64_t row;

    if (request >= r->requests || layer >= r->layers || !r->selects[layer] || head >= r->kv_heads || step == 0 ||
        step > r->request[request].steps) {
        return 0;
    }
    q = &r->request[request];
    row = ((uint64_t)(step - 1) * r->selecting + r->place[layer]) * r->kv_heads + head;
    at = r->data + q->offset + row * q->row_bytes;
    for (b = 0; b < q->row_bytes; b++) {
        unsigned bits = at[b];

        for (; bits != 0 && index != NULL; bits &= bits - 1) {
            index[n++] = (int32_t)(8 * b + (uint32_t)__builtin_ctz(bits));
        }
        n += (uint32_t)__builtin_popcount(bits);
    }
    return n;
}

static int fits_model(const struct smg_recording *r, const struct smg_world *w, struct smg_diag *diag)
{
    uint32_t layer;

    if (r->layers != w->model.layers || r->kv_heads != w->model.kv_heads) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%.200s: recorded from %u layers of %u KV heads, %s has %u of %u", r->path,
                            r->layers, r->kv_heads, w->model.name, w->model.layers, w->model.kv_heads);
    }
    for (layer = 0; layer < r->layers; layer++) {
        if ((r->selects[layer] != 0) != smg_model_layer_selects(&w->model, layer)) {
            return smg_diag_set(diag, SMG_ERR_INVALID, "%.200s: layer %u %s there, but not in %s", r->path, layer,
                                r->selects[layer] ? "selects" : "selects nothing", w->model.name);
        }
    }
    return SMG_OK;
}

int smg_recording_fits(const struct smg_recording *r, const struct smg_world *w, struct smg_diag *diag)
{
    uint32_t i;
    int status = fits_model(r, w, diag);

    if (status == SMG_OK && w->n_requests > r->requests) {
        return smg_diag_set(diag, SMG_ERR_INVALID, "%.200s: holds %u requests, the workload has %u", r->path, r->requests,
                            w->n_requests);
    }
    for (i = 0; i < w->n_requests && status == SMG_OK; i++) {
        const struct smg_request_spec *q = &w->requests[i];

        if (r->request[i].tokens != q->prompt_tokens) {
            return smg_diag_set(diag, SMG_ERR_INVALID, "%.200s: request %u has %u prompt tokens there, %u in the workload",
                                r->path, i, r->request[i].tokens, q->prompt_tokens);
        }
        if (r->request[i].steps + 1 < q->output_tokens) {
            return smg_diag_set(diag, SMG_ERR_INVALID, "%.200s: request %u has %u decode steps there, %u output tokens take %u",
                                r->path, i, r->request[i].steps, q->output_tokens, q->output_tokens - 1);
        }
    }
    return status;
}

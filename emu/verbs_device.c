/* Which device, port and address: what the user named, or the first that works. */
#include "config.h"

#include "emu/fabric_port.h"

#ifdef HAVE_VERBS

#include "emu/verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64
#define ANY        UINT32_MAX

/* NAME[:PORT[:GID_INDEX]] */
struct choice {
    char name[NAME_BYTES]; /* "": the first */
    uint32_t port, gid_index;
};

static int number(const char **at, uint32_t max, uint32_t *out)
{
    char *end;
    unsigned long x = strtoul(*at, &end, 10);
    int good = end != *at && **at >= '0' && **at <= '9' && x <= max;
    *at = end;
    *out = (uint32_t)x;
    return good;
}

static int choose(const char *text, struct choice *out, struct smg_diag *diag)
{
    const char *at = text ? text : "";
    size_t n = strcspn(at, ":");
    int good = n < NAME_BYTES;
    *out = (struct choice){"", ANY, ANY};
    if (good) {
        memcpy(out->name, at, n);
        at += n;
    }
    if (good && *at == ':') {
        at++;
        good = number(&at, UINT8_MAX, &out->port) && out->port;
    }
    if (good && *at == ':') {
        at++;
        good = number(&at, UINT8_MAX, &out->gid_index);
    }
    if (!good || *at) {
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "verbs: device '%s': expected NAME, NAME:PORT or NAME:PORT:GID_INDEX",
                               text);
    }
    return SMG_OK;
}

/* ---- Device and port ---- */

/* Takes the port if it may carry traffic. */
static int try_port(struct verbs_fabric *v, uint32_t number)
{
    if (ibv_query_port(v->context, (uint8_t)number, &v->port) || v->port.state != IBV_PORT_ACTIVE) {
        return 0;
    }
    v->port_number = (uint8_t)number;
    return 1;
}

static int try_device(struct verbs_fabric *v, struct ibv_device *device, const struct choice *c)
{
    v->context = ibv_open_device(device);
    if (!v->context) {
        return 0;
    }
    if (!ibv_query_device(v->context, &v->device)) {
        uint32_t first = c->port == ANY ? 1 : c->port, last = c->port == ANY ? v->device.phys_port_cnt : c->port;
        for (uint32_t p = first; p <= last; p++) {
            if (try_port(v, p)) {
                return 1;
            }
        }
    }
    (void)ibv_close_device(v->context);
    v->context = NULL;
    return 0;
}

static int none_fits(struct ibv_device **list, int n, const struct choice *c, struct smg_diag *diag)
{
    char names[256] = "";
    size_t used = 0;
    int named = 0;
    for (int i = 0; i < n; i++) {
        const char *name = ibv_get_device_name(list[i]);
        named |= !strcmp(name, c->name);
        if (used < sizeof(names)) {
            int m = snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", name);
            used += m > 0 ? (size_t)m : 0;
        }
    }
    if (!n) {
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "verbs: no RDMA device here%s%s", *c->name ? ", asked for: " : "",
                               c->name);
    }
    if (*c->name && !named) {
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "verbs: no RDMA device '%s' here; there are: %s", c->name, names);
    }
    return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "verbs: no active port%s%s; devices: %s", *c->name ? " on device " : "",
                           c->name, names);
}

static int open_device(struct verbs_fabric *v, const struct choice *c, struct smg_diag *diag)
{
    int n = 0, status = SMG_OK;
    struct ibv_device **list = ibv_get_device_list(&n);
    n = list ? n : 0; /* without support in the kernel there is no list */
    for (int i = 0; i < n && !v->context; i++) {
        if (!*c->name || !strcmp(ibv_get_device_name(list[i]), c->name)) {
            (void)try_device(v, list[i], c);
        }
    }
    if (!v->context) {
        status = none_fits(list, n, c, diag);
    }
    if (list) {
        ibv_free_device_list(list);
    }
    return status;
}

/* ---- Address ---- */

/* "::ffff:a.b.c.d" for IPv4. */
static void gid_of(const struct sockaddr_storage *node, uint8_t gid_out[16])
{
    if (node->ss_family == AF_INET6) {
        struct sockaddr_in6 a;
        memcpy(&a, node, sizeof(a));
        memcpy(gid_out, &a.sin6_addr, 16);
        return;
    }
    struct sockaddr_in a;
    memcpy(&a, node, sizeof(a));
    memset(gid_out, 0, 10);
    memset(gid_out + 10, 0xff, 2);
    memcpy(gid_out + 12, &a.sin_addr, 4);
}

static int is_ipv4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(gid, prefix, sizeof(prefix));
}

static int resolve(struct verbs_fabric *v, const char *node, struct smg_diag *diag)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int error = getaddrinfo(node, NULL, &hints, &found);
    if (error) {
        return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED, "verbs: address '%s': %s", node, gai_strerror(error));
    }
    memcpy(&v->node, found->ai_addr, found->ai_addrlen);
    v->node_bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return SMG_OK;
}

/* Where nobody named an address, the one of the GID that was found. */
static void node_of(const uint8_t gid[16], struct verbs_fabric *v)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (is_ipv4(gid)) {
        memcpy(&a.sin_addr, gid + 12, 4);
    }
    memcpy(&v->node, &a, sizeof(a));
    v->node_bytes = sizeof(a);
}

/* Entries are routed by IP (RoCE v2) or, on older devices, not; the first of the better kind wins. */
static int search_gid(struct verbs_fabric *v, const uint8_t *wanted)
{
    int best = -1;
    for (int i = 0; i < v->port.gid_tbl_len && i <= UINT8_MAX; i++) {
        struct ibv_gid_entry e;
        if (ibv_query_gid_ex(v->context, v->port_number, (uint32_t)i, &e, 0) ||
            (wanted ? memcmp(e.gid.raw, wanted, 16) : !is_ipv4(e.gid.raw))) {
            continue;
        }
        if (best < 0 || e.gid_type == IBV_GID_TYPE_ROCE_V2) {
            v->gid = e.gid;
            best = i;
        }
        if (e.gid_type == IBV_GID_TYPE_ROCE_V2) {
            break;
        }
    }
    return best;
}

static int find_gid(struct verbs_fabric *v, const struct choice *c, const char *node, struct smg_diag *diag)
{
    uint8_t wanted[16];
    int index = -1;
    if (node) {
        gid_of(&v->node, wanted);
    }
    if (c->gid_index != ANY) {
        index = ibv_query_gid(v->context, v->port_number, (int)c->gid_index, &v->gid) ? -1 : (int)c->gid_index;
    } else {
        index = search_gid(v, node ? wanted : NULL);
    }
    if (index >= 0) {
        v->gid_index = (uint8_t)index;
        return SMG_OK;
    }
    if (v->port.link_layer == IBV_LINK_LAYER_INFINIBAND) {
        return SMG_OK; /* reached by its LID */
    }
    return smg_fabric_fail(diag, SMG_ERR_UNSUPPORTED,
                           "verbs: device %s port %u has no GID %s%s; show_gids or "
                           "/sys/class/infiniband list them, --device NAME:PORT:GID_INDEX names one",
                           ibv_get_device_name(v->context->device), v->port_number,
                           node ? "for address " : "with an IPv4 address", node ? node : "");
}

int smg_verbs_device_open(struct verbs_fabric *v, const char *name, const char *node, struct smg_diag *diag)
{
    struct choice c;
    int status = choose(name, &c, diag);
    if (!status) {
        status = open_device(v, &c, diag);
    }
    if (!status && node) {
        status = resolve(v, node, diag);
    }
    if (!status) {
        status = find_gid(v, &c, node, diag);
    }
    if (!status && !node) {
        node_of(v->gid.raw, v);
    }
    return status;
}

#endif

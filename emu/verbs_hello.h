/* What the two ends of a queue pair tell each other over TCP before it can be used, as bytes: fixed length, little-endian,
 * checked whole before any of it is believed. Needs no RDMA library. */
#ifndef SMG_EMU_VERBS_HELLO_H
#define SMG_EMU_VERBS_HELLO_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "emu/fabric_port.h"

enum smg_verbs_link { SMG_VERBS_INFINIBAND = 1, SMG_VERBS_ETHERNET = 2 };

struct smg_verbs_hello {
    uint16_t instance, queue;
    uint32_t qpn, psn; /* 24 bits each */
    uint16_t lid;      /* InfiniBand: unicast; else 0 */
    uint8_t mtu;       /* 1 to 5: 256 to 4096 bytes */
    uint8_t link;      /* enum smg_verbs_link */
    uint8_t gid[16];   /* Ethernet: not all zero */
};

#define SMG_VERBS_HELLO_BYTES 48
void smg_verbs_hello_encode(const struct smg_verbs_hello *hello, uint8_t bytes_out[SMG_VERBS_HELLO_BYTES]);
/* SMG_ERR_PROTOCOL: not a hello of this version, or a field out of its range; *out is undefined then. */
int smg_verbs_hello_decode(const uint8_t bytes[SMG_VERBS_HELLO_BYTES], struct smg_verbs_hello *out);

/* The address of a TCP listener, IPv4 or IPv6, as the harness carries it. */
void smg_verbs_address_encode(const struct sockaddr_storage *listener, struct smg_fabric_address *out);
/* SMG_ERR_PROTOCOL: not such an address. */
int smg_verbs_address_decode(const struct smg_fabric_address *address, struct sockaddr_storage *out, socklen_t *bytes_out);

#endif

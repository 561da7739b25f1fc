/* Namespaces, veth pairs and addresses by rtnetlink(7). */
#define _GNU_SOURCE
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct message {
    struct nlmsghdr header;
    char rest[1024];
};

static void* append(struct message* message, const void* data, size_t size) {
    size_t place = NLMSG_ALIGN(message->header.nlmsg_len);
    if (place + NLMSG_ALIGN(size) > sizeof *message) {
        fail("a netlink message is too long");
    }
    char* target = (char*)message + place;
    memset(target, 0, NLMSG_ALIGN(size));
    if (data) {
        memcpy(target, data, size);
    }
    message->header.nlmsg_len = place + size;
    return target;
}

static struct rtattr* attribute(struct message* message, unsigned short type, const void* data, size_t size) {
    struct rtattr header = {RTA_LENGTH(size), type};
    struct rtattr* begin = append(message, &header, sizeof header);
    if (size) {
        append(message, data, size);
    }
    return begin;
}

static void end_nested(struct message* message, struct rtattr* begin) {
    message->header.nlmsg_len =
        NLMSG_ALIGN(message->header.nlmsg_len); /* the message may not end before the attribute */
    begin->rta_len = (char*)message + message->header.nlmsg_len - (char*)begin;
}

/* Sends `message` in the current namespace and waits for the acknowledgement. */
static void request(struct message* message, const char* what) {
    int channel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[2048];
    } answer;
    message->header.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    if (channel < 0 || send(channel, message, message->header.nlmsg_len, 0) < 0 ||
        recv(channel, &answer, sizeof answer, 0) < (ssize_t)(sizeof answer.header + sizeof answer.error.error)) {
        fail("%s: %s", what, strerror(errno));
    }
    if (answer.header.nlmsg_type != NLMSG_ERROR || answer.error.error) {
        fail("%s: %s", what, strerror(-answer.error.error));
    }
    close(channel);
}

static void enter(int network) {
    if (setns(network, CLONE_NEWNET)) {
        fail("setns: %s", strerror(errno));
    }
}

static unsigned index_of(const char* interface) {
    unsigned index = if_nametoindex(interface);
    if (!index) {
        fail("%s: %s", interface, strerror(errno));
    }
    return index;
}

static void set_up(unsigned index) {
    struct message message = {.header = {.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = RTM_NEWLINK}};
    struct ifinfomsg link = {
        .ifi_family = AF_UNSPEC, .ifi_index = (int)index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    append(&message, &link, sizeof link);
    request(&message, "setting a link up");
}

static void set_master(unsigned index, unsigned master) {
    struct message message = {.header = {.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = RTM_NEWLINK}};
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index};
    append(&message, &link, sizeof link);
    attribute(&message, IFLA_MASTER, &master, sizeof master);
    request(&message, "adding a port to a bridge");
}

void set_mtu(int network, const char* interface, unsigned mtu) {
    enter(network);
    struct message message = {.header = {.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = RTM_NEWLINK}};
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index_of(interface)};
    append(&message, &link, sizeof link);
    attribute(&message, IFLA_MTU, &mtu, sizeof mtu);
    request(&message, "setting the MTU of a link");
}

int make_network(void) {
    if (unshare(CLONE_NEWNET)) {
        fail("unshare: %s", strerror(errno));
    }
    int network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (network < 0) {
        fail("/proc/self/ns/net: %s", strerror(errno));
    }
    set_up(index_of("lo"));
    return network;
}

void set_sysctl(int network, const char* entry) {
    char path[256];
    const char* value = strchr(entry, '=');
    if (!value || snprintf(path, sizeof path, "/proc/sys/%.*s", (int)(value - entry), entry) >= (int)sizeof path) {
        fail("%s: no kernel parameter", entry);
    }
    for (char* dot = path; (dot = strchr(dot, '.'));) {
        *dot = '/';
    }
    enter(network);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, value + 1, strlen(value + 1)) < 0) {
        fail("%s: %s", entry, strerror(errno));
    }
    close(file);
}

/* ns-3 carries no unfilled checksums: `ethtool -K <interface> tx off`. */
static void without_checksum_offload(int network, const char* interface) {
    enter(network);
    int channel = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ethtool_value off = {ETHTOOL_STXCSUM, 0};
    struct ifreq asked = {.ifr_data = (void*)&off};
    snprintf(asked.ifr_name, sizeof asked.ifr_name, "%s", interface);
    if (channel < 0 || ioctl(channel, SIOCETHTOOL, &asked)) {
        fail("checksum offload of %s: %s", interface, strerror(errno));
    }
    struct ethtool_value segmentation = {ETHTOOL_SGSO, 1};
    asked.ifr_data = (void*)&segmentation;
    if (ioctl(channel, SIOCETHTOOL, &asked)) {
        fail("segmentation of %s: %s", interface, strerror(errno));
    }
    close(channel);
}

static void interface_attributes(struct message* message, const char* name, uint8_t mac, int network) {
    const uint8_t address[6] = {0x02, 0x51, 0x53, 0, 0, mac}; /* locally administered */
    attribute(message, IFLA_IFNAME, name, strlen(name) + 1);
    attribute(message, IFLA_ADDRESS, address, sizeof address);
    attribute(message, IFLA_NET_NS_FD, &network, sizeof network);
}

void join(int left, const char* left_name, uint8_t left_mac, int right, const char* right_name, uint8_t right_mac) {
    struct message message = {
        .header = {.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL}};
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
    append(&message, &link, sizeof link);
    interface_attributes(&message, left_name, left_mac, left);
    struct rtattr* information = attribute(&message, IFLA_LINKINFO, NULL, 0);
    attribute(&message, IFLA_INFO_KIND, "veth", sizeof "veth");
    struct rtattr* data = attribute(&message, IFLA_INFO_DATA, NULL, 0);
    struct rtattr* peer = attribute(&message, VETH_INFO_PEER, NULL, 0);
    append(&message, &link, sizeof link);
    interface_attributes(&message, right_name, right_mac, right);
    end_nested(&message, peer);
    end_nested(&message, data);
    end_nested(&message, information);
    request(&message, "making a veth pair");
    without_checksum_offload(left, left_name);
    without_checksum_offload(right, right_name);
}

void make_bridge(int network, const char* name, uint8_t mac) {
    enter(network);
    struct message message = {
        .header = {.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL}};
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
    append(&message, &link, sizeof link);
    interface_attributes(&message, name, mac, network);
    struct rtattr* information = attribute(&message, IFLA_LINKINFO, NULL, 0);
    attribute(&message, IFLA_INFO_KIND, "bridge", sizeof "bridge");
    end_nested(&message, information);
    request(&message, "making a bridge");
}

void add_port(int network, const char* interface, const char* bridge) {
    enter(network);
    const unsigned index = index_of(interface);
    set_master(index, index_of(bridge));
    set_up(index);
}

void add_address(int network, const char* interface, const char* address) {
    char text[64];
    snprintf(text, sizeof text, "%s", address);
    char* slash = strchr(text, '/');
    if (!slash) {
        fail("%s: an address without prefix", address);
    }
    *slash = 0;
    const bool six = strchr(text, ':');
    unsigned char binary[16];
    if (inet_pton(six ? AF_INET6 : AF_INET, text, binary) != 1) {
        fail("%s: no address", address);
    }
    enter(network);
    const unsigned index = index_of(interface);
    set_up(index);
    struct message message = {
        .header = {.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = RTM_NEWADDR, .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL}};
    struct ifaddrmsg header = {.ifa_family = six ? AF_INET6 : AF_INET,
                               .ifa_prefixlen = (uint8_t)atoi(slash + 1),
                               .ifa_flags = six ? IFA_F_NODAD : 0,
                               .ifa_index = index};
    append(&message, &header, sizeof header);
    attribute(&message, IFA_LOCAL, binary, six ? 16 : 4);
    attribute(&message, IFA_ADDRESS, binary, six ? 16 : 4);
    request(&message, address);
}

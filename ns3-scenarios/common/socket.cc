#include "socket.h"

#include "clock.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace quicsat {

namespace {
constexpr int kBuffer = 32 << 20;               // bytes; 250 Mbit/s for a second
constexpr uint32_t kProbeVersion = 0x1a2a3a4a;  // reserved to force Version Negotiation (RFC 9000, section 15)
constexpr size_t kProbeSize = 1200;             // smaller datagrams need not be answered
constexpr int kProbeInterval = 20;              // milliseconds
// an endpoint that takes no frames must not hold up the other one for long
constexpr timeval kSendTimeout = {0, 10'000};
constexpr int64_t kSameMoment = 10'000;  // nanoseconds

int Check(int result, const char* what) {
    if (result < 0) {
        Fail(4, std::string(what) + ": " + std::strerror(errno));
    }
    return result;
}

// How far the monotonic clock is ahead of the real one: both are read again if something came between.
int64_t ClockOffset() {
    int64_t before, real, after;
    int tries = 3;
    do {
        before = Nanoseconds(CLOCK_MONOTONIC);
        real = Nanoseconds(CLOCK_REALTIME);
        after = Nanoseconds(CLOCK_MONOTONIC);
    } while (after - before > kSameMoment && --tries);
    return before - real;
}

// As large a buffer as may be had; beyond the machine's limit with CAP_NET_ADMIN.
void Enlarge(int socket, int force, int option) {
    if (setsockopt(socket, SOL_SOCKET, force, &kBuffer, sizeof kBuffer) < 0) {
        setsockopt(socket, SOL_SOCKET, option, &kBuffer, sizeof kBuffer);
    }
}

void AttachFilter(int socket, const char* ipv4, const char* ipv6) {
    in_addr four{};
    in6_addr six{};
    inet_pton(AF_INET, ipv4, &four);
    inet_pton(AF_INET6, ipv6, &six);
    uint32_t words[4];
    std::memcpy(words, &six, sizeof words);
    const uint32_t drop = 0, all = 0x40000;
    std::array<sock_filter, 15> code = {{
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IP, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 30),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(four.s_addr), 10, 9),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 0, 8),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 38),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(words[0]), 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 42),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(words[1]), 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 46),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(words[2]), 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 50),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(words[3]), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, all),
        BPF_STMT(BPF_RET | BPF_K, drop),
    }};
    const sock_fprog program = {code.size(), code.data()};
    Check(setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), "packet filter");
}

// A packet of an unknown QUIC version, which every server answers.
std::array<uint8_t, kProbeSize> MakeProbe() {
    std::array<uint8_t, kProbeSize> probe = {0xc0};
    const uint32_t version = htonl(kProbeVersion);
    std::memcpy(&probe[1], &version, sizeof version);
    probe[5] = 8;   // length of the destination connection id
    probe[14] = 8;  // length of the source connection id
    // From the kernel: std::random_device asks the processor, if it can, and virtual time knows nothing of that.
    for (const int connectionId : {6, 15}) {
        Check(static_cast<int>(getrandom(&probe[connectionId], 8, 0)), "random numbers");
    }
    return probe;
}

// A UDP socket towards each address of the host.
std::vector<int> ConnectAll(const std::string& hostAndPort) {
    const size_t colon = hostAndPort.rfind(':');
    if (colon == std::string::npos) {
        Fail(2, "WAITFORSERVER=" + hostAndPort + ": expected a host and a port like server:443");
    }
    std::string host = hostAndPort.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    addrinfo hints{}, *list = nullptr;
    hints.ai_socktype = SOCK_DGRAM;
    if (getaddrinfo(host.c_str(), hostAndPort.substr(colon + 1).c_str(), &hints, &list)) {
        Fail(2, "WAITFORSERVER=" + hostAndPort + ": no such host or port");
    }
    std::vector<int> sockets;
    for (const addrinfo* entry = list; entry; entry = entry->ai_next) {
        const int fd = Check(::socket(entry->ai_family, SOCK_DGRAM | SOCK_NONBLOCK, 0), "UDP socket");
        Check(connect(fd, entry->ai_addr, entry->ai_addrlen), "connect to the server");
        sockets.push_back(fd);
    }
    freeaddrinfo(list);
    return sockets;
}

// Whether such a packet has come: long header, version 0.
bool IsVersionNegotiation(int fd) {
    uint8_t answer[2048];
    return recv(fd, answer, sizeof answer, 0) >= 7 && answer[0] & 0x80 &&
           !(answer[1] | answer[2] | answer[3] | answer[4]);
}
}  // namespace

void Fail(int status, const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(status);
}

Interface FindInterface(const char* address) {
    in_addr wanted{};
    inet_pton(AF_INET, address, &wanted);
    ifaddrs* list = nullptr;
    Check(getifaddrs(&list), "getifaddrs");
    Interface found{};
    for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
        if (entry->ifa_addr && entry->ifa_addr->sa_family == AF_INET &&
            reinterpret_cast<sockaddr_in*>(entry->ifa_addr)->sin_addr.s_addr == wanted.s_addr) {
            found.name = entry->ifa_name;
        }
    }
    freeifaddrs(list);
    if (found.name.empty()) {
        Fail(4, std::string("no interface has the address ") + address);
    }
    found.index = static_cast<int>(if_nametoindex(found.name.c_str()));
    ifreq request{};
    std::strncpy(request.ifr_name, found.name.c_str(), IFNAMSIZ - 1);
    const int socket = Check(::socket(AF_INET, SOCK_DGRAM, 0), "socket");
    Check(ioctl(socket, SIOCGIFHWADDR, &request), "hardware address");
    close(socket);
    std::memcpy(found.mac, request.ifr_hwaddr.sa_data, sizeof found.mac);
    return found;
}

int OpenPacketSocket(const Interface& interface, const char* ipv4, const char* ipv6) {
    const int fd = Check(::socket(AF_PACKET, SOCK_RAW, 0), "packet socket (needs CAP_NET_RAW)");
    AttachFilter(fd, ipv4, ipv6);
    const int one = 1;
    Check(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one), "PACKET_IGNORE_OUTGOING");
    Check(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one), "SO_TIMESTAMPNS");
    Check(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof kSendTimeout), "SO_SNDTIMEO");
    Enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF);
    Enlarge(fd, SO_SNDBUFFORCE, SO_SNDBUF);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = interface.index;
    Check(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind to interface");
    packet_mreq promiscuous{};
    promiscuous.mr_ifindex = interface.index;
    promiscuous.mr_type = PACKET_MR_PROMISC;
    Check(setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous), "promiscuous mode");
    return fd;
}

size_t ReadFrames(int socket, std::span<Frame> frames) {
    constexpr size_t kMost = 64;
    mmsghdr messages[kMost] = {};
    iovec vectors[kMost];
    alignas(cmsghdr) uint8_t controls[kMost][CMSG_SPACE(sizeof(timespec))];
    const size_t most = std::min(frames.size(), kMost);
    for (size_t index = 0; index < most; ++index) {
        vectors[index] = {frames[index].bytes.data(), Frame::kMost};
        msghdr& header = messages[index].msg_hdr;
        header.msg_iov = &vectors[index];
        header.msg_iovlen = 1;
        header.msg_control = controls[index];
        header.msg_controllen = sizeof controls[index];
    }
    const int count = recvmmsg(socket, messages, static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
    const int64_t offset = ClockOffset(), now = Nanoseconds(CLOCK_MONOTONIC);
    for (int index = 0; index < count; ++index) {
        frames[index].size = messages[index].msg_len;
        frames[index].arrival = now;
        const cmsghdr* control = CMSG_FIRSTHDR(&messages[index].msg_hdr);
        if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_TIMESTAMPNS) {
            timespec came;
            std::memcpy(&came, CMSG_DATA(control), sizeof came);
            frames[index].arrival = came.tv_sec * 1'000'000'000 + came.tv_nsec + offset;
        }
    }
    return static_cast<size_t>(std::max(count, 0));
}

bool WriteFrame(int socket, const uint8_t* bytes, size_t size) {
    return send(socket, bytes, size, 0) == static_cast<ssize_t>(size);
}

uint64_t Overflows(int socket) {
    tpacket_stats statistics{};
    socklen_t size = sizeof statistics;
    Check(getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, &statistics, &size), "PACKET_STATISTICS");
    return statistics.tp_drops;
}

void OpenStartSignal(uint16_t port) {
    const int fd = Check(::socket(AF_INET6, SOCK_STREAM, 0), "TCP socket");
    const int one = 1, zero = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    Check(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero), "IPV6_V6ONLY");
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    Check(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind of the start signal");
    Check(listen(fd, 100), "listen for the start signal");
}

bool AwaitServer(const std::string& hostAndPort, double seconds, const volatile std::sig_atomic_t& stop) {
    const std::vector<int> sockets = ConnectAll(hostAndPort);
    const auto probe = MakeProbe();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    bool answered = false;
    while (!answered && !stop && std::chrono::steady_clock::now() < deadline) {
        std::vector<pollfd> waiting;
        for (const int fd : sockets) {
            send(fd, probe.data(), probe.size(), 0);  // refused until the server listens
            waiting.push_back({fd, POLLIN, 0});
        }
        poll(waiting.data(), waiting.size(), kProbeInterval);
        bool refused = false;
        for (const pollfd& one : waiting) {
            answered = answered || IsVersionNegotiation(one.fd);
            refused = refused || one.revents & POLLERR;
        }
        if (refused && !answered) {
            usleep(kProbeInterval * 1000);  // poll came back at once
        }
    }
    for (const int fd : sockets) {
        close(fd);
    }
    return answered;
}

bool TakeRealtimePriority(const Reservation& reservation) {
    sched_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.sched_policy = SCHED_DEADLINE;
    wanted.sched_flags = SCHED_FLAG_RESET_ON_FORK | SCHED_FLAG_RECLAIM;
    wanted.sched_runtime = static_cast<uint64_t>(reservation.share * reservation.period);
    wanted.sched_deadline = wanted.sched_period = reservation.period;
    return sched_setattr(0, &wanted, 0) == 0;
}

}  // namespace quicsat

// Samples what the kernel knows of TCP connections in its network namespace: tcp_info by sock_diag(7).
//
// A row per connection with the given local port, and per change, into a CSV file until SIGTERM. Exit status 2: a wrong
// option, or a kernel that does not tell.
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <map>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint32_t kEstablished = 1 << 1, kFinWait1 = 1 << 4, kCloseWait = 1 << 8,
                   kLastAck = 1 << 9;  // net/tcp_states.h
constexpr size_t kBuffer = 64 << 10;
constexpr uint32_t kNoThreshold = 0x7fffffff;

volatile std::sig_atomic_t g_stop = 0;

[[noreturn]] void Fail(const std::string& message) {
    std::fprintf(stderr, "tcp-info: %s\n", message.c_str());
    std::exit(2);
}

int64_t Now() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * kSecond + now.tv_nsec;
}

struct Sample {
    uint32_t window, segment, trip, threshold, unacknowledged, repeated;
    bool operator==(const Sample&) const = default;
};
using Peer = std::tuple<uint32_t, uint32_t>;  // port, and the kernel's cookie of the connection

class Sampler {
  public:
    Sampler(uint16_t port, const std::string& path)
        : m_port(port),
          m_file(std::fopen(path.c_str(), "w")),
          m_channel(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
        if (!m_file || m_channel < 0) {
            Fail(path + ": " + std::strerror(errno));
        }
        std::fputs("time,port,congestion_window,segment,smoothed_rtt,threshold,unacknowledged,retransmitted\n", m_file);
    }

    ~Sampler() {
        close(m_channel);
        if (std::fclose(m_file)) {
            Fail(std::strerror(errno));
        }
    }

    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;

    void Take() {
        for (const uint8_t family : {AF_INET, AF_INET6}) {
            Ask(family);
            while (Read()) {
            }
        }
    }

  private:
    void Ask(uint8_t family) const {
        struct {
            nlmsghdr header;
            inet_diag_req_v2 request;
        } message{};
        message.header = {sizeof message, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0};
        message.request.sdiag_family = family;
        message.request.sdiag_protocol = IPPROTO_TCP;
        message.request.idiag_ext = 1 << (INET_DIAG_INFO - 1);
        message.request.idiag_states = kEstablished | kFinWait1 | kCloseWait | kLastAck;
        if (send(m_channel, &message, sizeof message, 0) < 0) {
            Fail(std::string("sock_diag: ") + std::strerror(errno));
        }
    }

    // Takes one datagram of the answer; whether more will come.
    bool Read() {
        alignas(nlmsghdr) static char buffer[kBuffer];
        const ssize_t size = recv(m_channel, buffer, sizeof buffer, 0);
        if (size < 0) {
            if (errno == EINTR) {
                return true;
            }
            Fail(std::string("sock_diag: ") + std::strerror(errno));
        }
        auto left = static_cast<unsigned>(size);
        for (auto* header = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(header, left);
             header = NLMSG_NEXT(header, left)) {
            if (header->nlmsg_type == NLMSG_DONE) {
                return false;
            }
            if (header->nlmsg_type == NLMSG_ERROR) {
                Fail(std::string("sock_diag: ") + std::strerror(-static_cast<nlmsgerr*>(NLMSG_DATA(header))->error));
            }
            Use(*static_cast<inet_diag_msg*>(NLMSG_DATA(header)),
                header->nlmsg_len - NLMSG_LENGTH(sizeof(inet_diag_msg)));
        }
        return true;
    }

    void Use(inet_diag_msg& message, unsigned left) {
        if (ntohs(message.id.idiag_sport) != m_port) {
            return;
        }
        for (auto* attribute = reinterpret_cast<rtattr*>(&message + 1); RTA_OK(attribute, left);
             attribute = RTA_NEXT(attribute, left)) {
            if (attribute->rta_type == INET_DIAG_INFO) {
                tcp_info info{};
                std::memcpy(&info, RTA_DATA(attribute), std::min<size_t>(sizeof info, RTA_PAYLOAD(attribute)));
                Write(message, info);
            }
        }
    }

    void Write(const inet_diag_msg& message, const tcp_info& info) {
        const uint32_t port = ntohs(message.id.idiag_dport);
        const Sample sample = {info.tcpi_snd_cwnd,     info.tcpi_snd_mss, info.tcpi_rtt,
                               info.tcpi_snd_ssthresh, info.tcpi_unacked, info.tcpi_total_retrans};
        Sample& last = m_last[{port, message.id.idiag_cookie[0]}];
        if (sample == last) {
            return;
        }
        last = sample;
        const auto bytes = [&](uint32_t packets) { return static_cast<unsigned long long>(packets) * sample.segment; };
        std::fprintf(m_file, "%lld,%u,%llu,%u,%u,", static_cast<long long>(Now()), port, bytes(sample.window),
                     sample.segment, sample.trip);
        if (sample.threshold < kNoThreshold) {
            std::fprintf(m_file, "%llu", bytes(sample.threshold));
        }
        std::fprintf(m_file, ",%llu,%u\n", bytes(sample.unacknowledged), sample.repeated);
    }

    uint16_t m_port;
    std::FILE* m_file;
    int m_channel;
    std::map<Peer, Sample> m_last;
};

// The number behind `name` in an option "name=number"; -1 if it is another option.
int Number(std::string_view option, std::string_view name) {
    int value = -1;
    if (option.starts_with(name)) {
        const char* end = option.data() + option.size();
        const auto found = std::from_chars(option.data() + name.size(), end, value);
        return found.ptr == end ? value : -1;
    }
    return -1;
}

}  // namespace

int main(int count, char** words) {
    int interval = 0, port = 0;
    std::string path;
    for (int index = 1; index < count; ++index) {
        const std::string_view option = words[index];
        if (const int found = Number(option, "--interval="); found > 0) {
            interval = found;
        } else if (const int number = Number(option, "--port="); number > 0 && number < 65536) {
            port = number;
        } else if (option.starts_with("--output=")) {
            path = option.substr(9);
        } else {
            Fail("unknown option or wrong value: " + std::string(option));
        }
    }
    if (!interval || !port || path.empty()) {
        Fail("needed: --interval=MILLISECONDS --port=NUMBER --output=FILE");
    }
    struct sigaction action{};
    action.sa_handler = [](int) { g_stop = 1; };
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    Sampler sampler(static_cast<uint16_t>(port), path);
    const timespec pause{interval / 1000, interval % 1000 * 1'000'000L};
    while (!g_stop) {
        sampler.Take();
        nanosleep(&pause, nullptr);
    }
    return 0;
}

// Measures a link with UDP: a paced stream with its receiver, and an echo with its asker.
//
// Times are the kernel's own receive times (SO_TIMESTAMPNS) against the sender's clock, so both ends have to run on one
// machine. "Wire" is the packet as the simulator's link carries it: IP packet and two bytes of PPP.
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
#include <map>
#include <netdb.h>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kBuffer = 16 << 20;
constexpr size_t kLargest = 65536;
constexpr uint64_t kUdpIpv4 = 28, kUdpIpv6 = 48, kPpp = 2;
constexpr double kStartup = 0.25, kEnd = 0.95;  // the steady state, as shares of the whole reception

volatile std::sig_atomic_t g_stop = 0;

struct Stamp {
    uint64_t number;
    int64_t sent;
    int64_t arrived;  // at the echo
    int64_t returned;
};
// A link that corrupts changes a byte of the first 50: there stand a stamp and zeros, and the stamp that counts behind.
constexpr size_t kStampAt = 64;
constexpr size_t kSmallest = kStampAt + sizeof(Stamp);

void Put(std::vector<uint8_t>& packet, const Stamp& stamp) {
    std::memset(packet.data(), 0, kStampAt);
    std::memcpy(packet.data(), &stamp, sizeof stamp);
    std::memcpy(packet.data() + kStampAt, &stamp, sizeof stamp);
}

Stamp Get(const std::vector<uint8_t>& packet) {
    Stamp stamp{};
    std::memcpy(&stamp, packet.data() + kStampAt, sizeof stamp);
    return stamp;
}

// Whether the packet is no longer what Put made of it.
bool IsCorrupted(const std::vector<uint8_t>& packet) {
    uint8_t expected[kStampAt] = {};
    std::memcpy(expected, packet.data() + kStampAt, sizeof(Stamp));
    return std::memcmp(packet.data(), expected, sizeof expected) != 0;
}

[[noreturn]] void Fail(const std::string& message) {
    std::fprintf(stderr, "udp-stream: %s\n", message.c_str());
    std::exit(2);
}

int Check(int result, const char* what) {
    if (result < 0) {
        Fail(std::string(what) + ": " + std::strerror(errno));
    }
    return result;
}

int64_t Now() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * kSecond + now.tv_nsec;
}

void SleepUntil(int64_t when) {
    const timespec wake = {when / kSecond, when % kSecond};
    clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &wake, nullptr);
}

// ---- options ------------------------------------------------------------------------------------

struct Options {
    std::string mode, host, report = "/report.json";
    double port = 0, rate = 0, size = 1200, count = 0, interval = 0.02, idle = 1.5, patience = 30;
    double catchUp = 0.001;  // seconds of delay that a sender makes up for by a burst
    double burst = 0;        // packets that are sent at once at the beginning, in addition to those of the rate
    double ecn = 0;          // codepoint of the packets, 0 to 3 (RFC 3168, section 5)
};

double Number(const std::string& name, const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value < 1e15)) {
        Fail("--" + name + "=" + text + " is no number");
    }
    return value;
}

Options Read(int argc, char** argv) {
    Options options;
    std::map<std::string, double*> numbers = {
        {"port", &options.port},         {"rate", &options.rate},         {"size", &options.size},
        {"count", &options.count},       {"interval", &options.interval}, {"idle", &options.idle},
        {"patience", &options.patience}, {"catch-up", &options.catchUp},  {"burst", &options.burst},
        {"ecn", &options.ecn},
    };
    options.mode = argc > 1 ? argv[1] : "";
    for (int index = 2; index < argc; ++index) {
        const std::string word = argv[index];
        const size_t equals = word.find('=');
        const std::string name = word.starts_with("--") && equals != word.npos ? word.substr(2, equals - 2) : "";
        if (const auto number = numbers.find(name); number != numbers.end()) {
            *number->second = Number(name, word.substr(equals + 1));
        } else if (name == "host" || name == "report") {
            (name == "host" ? options.host : options.report) = word.substr(equals + 1);
        } else {
            Fail("unknown option " + word);
        }
    }
    if (options.size < kSmallest || options.size >= kLargest) {
        Fail("--size is out of range");
    }
    return options;
}

// ---- sockets ------------------------------------------------------------------------------------

int Configured(int fd) {
    const int one = 1;
    Check(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one), "SO_TIMESTAMPNS");
    for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
        setsockopt(fd, SOL_SOCKET, option, &kBuffer, sizeof kBuffer);  // the kernel gives what it allows
    }
    return fd;
}

int Connected(const Options& options, uint64_t& overhead) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_DGRAM;
    const std::string port = std::to_string(static_cast<int>(options.port));
    if (getaddrinfo(options.host.c_str(), port.c_str(), &hints, &found)) {
        Fail("no such host: " + options.host);
    }
    const int fd = Configured(Check(socket(found->ai_family, SOCK_DGRAM, 0), "socket"));
    Check(connect(fd, found->ai_addr, found->ai_addrlen), "connect");
    const int ecn = static_cast<int>(options.ecn);
    const bool ipv4 = found->ai_family == AF_INET;
    Check(setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TOS : IPV6_TCLASS, &ecn, sizeof ecn), "ECN");
    overhead = (found->ai_family == AF_INET ? kUdpIpv4 : kUdpIpv6) + kPpp;
    freeaddrinfo(found);
    return fd;
}

int Bound(const Options& options) {
    const int fd = Configured(Check(socket(AF_INET6, SOCK_DGRAM, 0), "socket"));
    const int zero = 0;
    Check(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero), "IPV6_V6ONLY");
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(options.port));
    Check(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
    std::puts("ready");
    std::fflush(stdout);
    return fd;
}

struct Arrival {
    ssize_t size = -1;
    int64_t time = 0;
    sockaddr_in6 from{};
    socklen_t fromSize = 0;
};

// One packet; size -1 if none came before `deadline`.
Arrival Receive(int fd, std::vector<uint8_t>& packet, int64_t deadline) {
    pollfd waiting = {fd, POLLIN, 0};
    Arrival arrival;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
    iovec part = {packet.data(), packet.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_name = &arrival.from;
    message.msg_namelen = sizeof arrival.from;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    arrival.size = recvmsg(fd, &message, MSG_DONTWAIT);
    if (arrival.size < 0) {
        const int64_t left = (deadline - Now()) / 1'000'000;
        if (left <= 0 || g_stop || poll(&waiting, 1, static_cast<int>(left)) <= 0) {
            return arrival;
        }
        arrival.size = recvmsg(fd, &message, MSG_DONTWAIT);
    }
    arrival.time = Now();
    if (arrival.size >= 0) {
        arrival.fromSize = message.msg_namelen;
        if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header && header->cmsg_type == SCM_TIMESTAMPNS) {
            timespec stamp{};
            std::memcpy(&stamp, CMSG_DATA(header), sizeof stamp);
            arrival.time = stamp.tv_sec * kSecond + stamp.tv_nsec;
        }
    }
    return arrival;
}

// ---- report -------------------------------------------------------------------------------------

std::string List(const std::vector<int64_t>& values) {
    std::string text = "[";
    for (const int64_t value : values) {
        text += (text.size() > 1 ? "," : "") + std::to_string(value);
    }
    return text + "]";
}

void Write(const Options& options, const std::string& fields) {
    std::FILE* file = std::fopen(options.report.c_str(), "w");
    if (!file || std::fprintf(file, "{%s}\n", fields.c_str()) < 0 || std::fclose(file)) {
        Fail("cannot write " + options.report);
    }
}

std::string Field(const char* name, int64_t value) {
    return "\"" + std::string(name) + "\":" + std::to_string(value);
}

// ---- the stream ---------------------------------------------------------------------------------

// Sends packet `number` and says whether the kernel took it.
bool SendOne(int fd, std::vector<uint8_t>& packet, uint64_t number) {
    Put(packet, {number, Now(), 0, 0});
    return send(fd, packet.data(), packet.size(), 0) >= 0;
}

int Send(const Options& options) {
    uint64_t overhead = 0, number = 0, refused = 0;
    const int fd = Connected(options, overhead);
    std::vector<uint8_t> packet(static_cast<size_t>(options.size));
    const double gap = (options.size + static_cast<double>(overhead)) * 8 / options.rate * kSecond;
    const auto burst = static_cast<uint64_t>(options.burst);
    const uint64_t total = static_cast<uint64_t>(options.count) + burst;
    const auto catchUp = static_cast<int64_t>(options.catchUp * kSecond);
    const int64_t begin = Now();
    int64_t schedule = begin, latest = 0;
    for (; number < total && !g_stop; ++number) {
        const double place = number < burst ? 0 : static_cast<double>(number - burst);
        const int64_t due = schedule + static_cast<int64_t>(place * gap);
        int64_t now = Now();
        for (; now < due; now = Now()) {
            SleepUntil(due);
        }
        latest = std::max(latest, now - due);
        schedule += std::max<int64_t>(0, now - due - catchUp);
        refused += !SendOne(fd, packet, number);
    }
    Write(options, Field("sent", number) + "," + Field("refused", refused) + "," + Field("begin_ns", begin) + "," +
                       Field("duration_ns", Now() - begin) + "," + Field("latest_ns", latest));
    return 0;
}

struct Received {
    Stamp stamp;
    int64_t time;
    uint64_t wire;
    bool corrupted;
};

std::vector<int64_t> Missing(const std::vector<Received>& all) {
    std::vector<bool> seen;
    for (const Received& one : all) {
        seen.resize(std::max<size_t>(seen.size(), one.stamp.number + 1));
        seen[one.stamp.number] = true;
    }
    std::vector<int64_t> missing;
    for (size_t number = 0; number < seen.size(); ++number) {
        if (!seen[number]) {
            missing.push_back(static_cast<int64_t>(number));
        }
    }
    return missing;
}

// Wire bit/s between startup and end of the stream, by the kernel's receive times.
int64_t SteadyRate(const std::vector<Received>& all) {
    const double length = static_cast<double>(all.size());
    const auto first = static_cast<size_t>(length * kStartup), last = static_cast<size_t>(length * kEnd);
    if (last <= first + 1 || all[last].time <= all[first].time) {
        return 0;
    }
    uint64_t bytes = 0;
    for (size_t index = first + 1; index <= last; ++index) {
        bytes += all[index].wire;
    }
    return static_cast<int64_t>(static_cast<double>(bytes) * 8 * kSecond /
                                static_cast<double>(all[last].time - all[first].time));
}

std::vector<Received> Collect(const Options& options) {
    const int fd = Bound(options);
    std::vector<uint8_t> packet(kLargest);
    std::vector<Received> all;
    int64_t deadline = Now() + static_cast<int64_t>(options.patience * kSecond);
    while (!g_stop) {
        const Arrival arrival = Receive(fd, packet, deadline);
        if (arrival.size < 0) {
            break;
        }
        if (arrival.size < static_cast<ssize_t>(kSmallest)) {
            continue;
        }
        Received one{};
        one.stamp = Get(packet);
        one.corrupted = IsCorrupted(packet);
        const bool mapped = IN6_IS_ADDR_V4MAPPED(&arrival.from.sin6_addr);
        one.time = arrival.time;
        one.wire = static_cast<uint64_t>(arrival.size) + (mapped ? kUdpIpv4 : kUdpIpv6) + kPpp;
        all.push_back(one);
        deadline = arrival.time + static_cast<int64_t>(options.idle * kSecond);
    }
    return all;
}

int Receiver(const Options& options) {
    const std::vector<Received> all = Collect(options);
    std::vector<int64_t> delays;
    int64_t outOfOrder = 0, corrupted = 0;
    for (size_t index = 0; index < all.size(); ++index) {
        delays.push_back(all[index].time - all[index].stamp.sent);
        corrupted += all[index].corrupted;
        outOfOrder += index && all[index].stamp.number < all[index - 1].stamp.number;
    }
    std::sort(delays.begin(), delays.end());
    const auto at = [&](double share) {
        return delays.empty() ? 0 : delays[static_cast<size_t>(share * static_cast<double>(delays.size() - 1))];
    };
    Write(options, Field("received", static_cast<int64_t>(all.size())) + "," + Field("out_of_order", outOfOrder) + "," +
                       Field("corrupted", corrupted) + "," +
                       Field("duration_ns", all.empty() ? 0 : all.back().time - all.front().time) + "," +
                       Field("steady_rate", SteadyRate(all)) + ",\"delay_ns\":" +
                       List({at(0), at(0.5), at(0.95), at(1)}) + ",\"missing\":" + List(Missing(all)));
    return 0;
}

// ---- the echo -----------------------------------------------------------------------------------

int Echo(const Options& options) {
    const int fd = Bound(options);
    std::vector<uint8_t> packet(kLargest);
    while (!g_stop) {
        const Arrival arrival = Receive(fd, packet, Now() + kSecond);
        if (arrival.size < static_cast<ssize_t>(kSmallest)) {
            continue;
        }
        Stamp stamp = Get(packet);
        stamp.arrived = arrival.time;
        stamp.returned = Now();
        Put(packet, stamp);
        sendto(fd, packet.data(), static_cast<size_t>(arrival.size), 0,
               reinterpret_cast<const sockaddr*>(&arrival.from), arrival.fromSize);
    }
    return 0;
}

// Answers packets as a QUIC server answers a version that it does not know (RFC 9000, section 17.2.1), so that a
// simulator that waits for a server begins.
int Answer(const Options& options) {
    const int fd = Bound(options);
    const uint8_t negotiation[] = {0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};  // no connection ids; version 1
    std::vector<uint8_t> packet(kLargest);
    while (!g_stop) {
        const Arrival arrival = Receive(fd, packet, Now() + kSecond);
        if (arrival.size > 0) {
            sendto(fd, negotiation, sizeof negotiation, 0, reinterpret_cast<const sockaddr*>(&arrival.from),
                   arrival.fromSize);
        }
    }
    return 0;
}

// Round trips without the time that the echo itself took.
int Ping(const Options& options) {
    uint64_t overhead = 0, number = 0;
    const int fd = Connected(options, overhead);
    std::vector<uint8_t> packet(static_cast<size_t>(options.size)), answer(kLargest);
    const auto total = static_cast<uint64_t>(options.count);
    const auto gap = static_cast<int64_t>(options.interval * kSecond);
    std::vector<int64_t> roundTrips, turnarounds;
    const int64_t begin = Now();
    for (; !g_stop; ++number) {
        const bool over = number >= total;
        if (!over) {
            SendOne(fd, packet, number);
        }
        const int64_t until = over ? Now() + static_cast<int64_t>(options.idle * kSecond)
                                   : begin + static_cast<int64_t>(number + 1) * gap;
        for (Arrival arrival; (arrival = Receive(fd, answer, until)).size > 0;) {
            const Stamp stamp = Get(answer);
            turnarounds.push_back(stamp.returned - stamp.arrived);
            roundTrips.push_back(arrival.time - stamp.sent - turnarounds.back());
            if (roundTrips.size() == total) {
                break;
            }
        }
        if (over || roundTrips.size() == total) {
            break;
        }
        SleepUntil(until);
    }
    Write(options, Field("sent", static_cast<int64_t>(total)) + ",\"round_trip_ns\":" + List(roundTrips) +
                       ",\"turnaround_ns\":" + List(turnarounds));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::map<std::string, int (*)(const Options&)> modes = {
        {"send", Send}, {"receive", Receiver}, {"echo", Echo}, {"ping", Ping}, {"answer", Answer}};
    const Options options = Read(argc, argv);
    const auto mode = modes.find(options.mode);
    if (mode == modes.end()) {
        Fail(
            "usage: udp-stream send|receive|echo|ping|answer --host=H --port=P --rate=BPS --size=B --count=N "
            "--interval=S --idle=S --patience=S --catch-up=S --burst=N --ecn=N --report=FILE");
    }
    struct sigaction action{};
    action.sa_handler = [](int) { g_stop = 1; };  // without SA_RESTART: a waiting call returns
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    prctl(PR_SET_TIMERSLACK, 1);
    return mode->second(options);
}

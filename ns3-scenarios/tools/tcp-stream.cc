// A TCP connection that always has something to send: the competing flow of scenario tcp-cross-traffic.
//
//     tcp-stream receive --port=5001
//     tcp-stream send --host=193.167.0.100 --port=5001 --congestion-control=cubic
//
// Both say what they do as {"event":"listening"} and {"event":"connected"}, and go on until they are killed. The sender
// tries for ten seconds to connect. A connection ends with its program, by a reset: otherwise the kernel would repeat its
// last packets for minutes, into the next run of the testbed. Exit status 1: the connection ended; 2: it could not be made.
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr int kAttempts = 200;
constexpr useconds_t kPause = 50'000;  // between two attempts; microseconds
std::array<char, 64 << 10> g_block = {};

[[noreturn]] void Fail(int status, const std::string& message) {
    std::fprintf(stderr, "tcp-stream: %s\n", message.c_str());
    std::exit(status);
}

int Check(int result, const std::string& what) {
    if (result < 0) {
        Fail(2, what + ": " + std::strerror(errno));
    }
    return result;
}

void Say(const char* event) {
    std::printf("{\"event\":\"%s\"}\n", event);
    std::fflush(stdout);
}

// Closes the connection of `fd` at once when its program ends, also when it is killed.
void LeaveNothing(int fd) {
    const linger atOnce = {.l_onoff = 1, .l_linger = 0};
    Check(setsockopt(fd, SOL_SOCKET, SO_LINGER, &atOnce, sizeof atOnce), "SO_LINGER");
}

sockaddr_in Address(const std::string& host, const std::string& port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(port.c_str())));
    if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
        Fail(2, host + " is no IPv4 address");
    }
    return address;
}

[[noreturn]] void Receive(const sockaddr_in& address) {
    const int listener = Check(socket(AF_INET, SOCK_STREAM, 0), "socket");
    const int one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    Check(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
    Check(listen(listener, 1), "listen");
    Say("listening");
    const int fd = Check(accept(listener, nullptr, nullptr), "accept");
    LeaveNothing(fd);
    while (read(fd, g_block.data(), g_block.size()) > 0) {
    }
    Fail(1, "the sender has gone");
}

int Connect(const sockaddr_in& address, const std::string& congestionControl) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        const int fd = Check(socket(AF_INET, SOCK_STREAM, 0), "socket");
        Check(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestionControl.c_str(),
                         static_cast<socklen_t>(congestionControl.size())),
              "congestion control " + congestionControl);
        LeaveNothing(fd);
        if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
            return fd;
        }
        close(fd);
        usleep(kPause);
    }
    Fail(2, std::string("connect: ") + std::strerror(errno));
}

[[noreturn]] void Send(const sockaddr_in& address, const std::string& congestionControl) {
    const int fd = Connect(address, congestionControl);
    Say("connected");
    while (send(fd, g_block.data(), g_block.size(), MSG_NOSIGNAL) > 0) {
    }
    Fail(1, std::string("send: ") + std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
    std::map<std::string, std::string> options = {
        {"host", "0.0.0.0"}, {"port", "5001"}, {"congestion-control", "cubic"}};
    const std::string mode = argc > 1 ? argv[1] : "";
    for (int index = 2; index < argc; ++index) {
        const std::string word = argv[index];
        const size_t equals = word.find('=');
        const auto option =
            options.find(word.starts_with("--") && equals != word.npos ? word.substr(2, equals - 2) : "");
        if (option == options.end()) {
            Fail(2, "unknown option " + word);
        }
        option->second = word.substr(equals + 1);
    }
    const sockaddr_in address = Address(options["host"], options["port"]);
    if (mode == "receive") {
        Receive(address);
    } else if (mode == "send") {
        Send(address, options["congestion-control"]);
    }
    Fail(2, "usage: tcp-stream receive|send --host=ADDRESS --port=P --congestion-control=NAME");
}

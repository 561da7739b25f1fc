// The simulator's sides: the network interfaces of its namespace, and what is asked of the kernel about them.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace quicsat {

// One side of the simulator.
struct Interface {
    std::string name;
    uint8_t mac[6];
    int index;
};

// The interface that has this IPv4 address; names are not reliable (Docker 28 orders them at will).
// Exits with status 4 if there is none.
Interface FindInterface(const char* address);

// A packet socket for all frames that arrive at `interface`, except IP packets addressed to this container itself
// (`ipv4`, `ipv6`): those belong to its kernel, e.g. the clients' start signal.
int OpenPacketSocket(const Interface& interface, const char* ipv4, const char* ipv6);

// An Ethernet frame, and when the kernel got it: nanoseconds on the monotonic clock.
struct Frame {
    static constexpr size_t kMost = 65536;
    std::array<uint8_t, kMost> bytes;
    size_t size;
    int64_t arrival;
};

// How many of `frames` were filled with what waits at a packet socket; 0 if nothing does.
size_t ReadFrames(int socket, std::span<Frame> frames);

// Sends a frame; false if the interface did not take it.
bool WriteFrame(int socket, const uint8_t* bytes, size_t size);

// Frames that the kernel dropped because the socket's buffer was full, since the last call.
uint64_t Overflows(int socket);

// Listening TCP sockets of the contract's start signal, on IPv4 and IPv6.
void OpenStartSignal(uint16_t port);

// CPU time that is promised to a thread.
struct Reservation {
    double share;     // of one CPU
    uint64_t period;  // nanoseconds
};

// Polls all addresses of `host:port` or `[address]:port` until a QUIC server answers at one of them with Version
// Negotiation (RFC 9000, section 6); false after `seconds`, or when `stop` is set. Exits with status 2 if there is no
// such host.
bool AwaitServer(const std::string& hostAndPort, double seconds, const volatile std::sig_atomic_t& stop);

// SCHED_DEADLINE for the calling thread: it goes before all others as far as its reservation goes, and beyond that as far
// as those of other threads are not used (sched(7)). False if the machine does not allow it, or has promised all that it
// has.
bool TakeRealtimePriority(const Reservation& reservation);

// One line on standard error, and the end.
[[noreturn]] void Fail(int status, const std::string& message);

}  // namespace quicsat

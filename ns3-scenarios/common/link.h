// All that a scenario can say of its link, and the options by which it is told.
#pragma once

#include "direction.h"
#include "options.h"
#include "packet.h"

#include <optional>
#include <string>

namespace quicsat {

// Times in which nothing arrives, whatever its protocol.
struct Blackhole {
    ns3::Time on, off;  // the link works, and then does not
    uint32_t repeat = 1;
    bool toClient = true, toServer = true;
};

// When a NAT in front of the client gives all flows other ports.
struct Rebinding {
    ns3::Time first;
    std::optional<ns3::Time> period = {};
    bool addresses = false;  // and another address
};

// Another link, between the client and the gateway next to it. It has a delay in both directions, or does not exist.
struct ClientSide {
    Direction forward = {};  // only delay, jitter, loss, and a rate with its queue, or no rate
    Direction back = {};
    std::optional<Subject> subject = {};  // other packets than those of the link itself, if that has a tunnel's
    explicit operator bool() const { return forward.delay && back.delay; }
};

// Forward: server to client; back: client to server.
struct Link {
    std::string scenario;
    uint32_t paperExtra = 1;  // packets that the buffer holds beyond `queue` in queue mode "paper"
    Direction forward = {};
    Direction back = {};
    std::string queueMode = "exact";
    uint32_t seed = 1;
    Subject subject = {};
    std::optional<Blackhole> blackhole = {};
    std::optional<Rebinding> rebinding = {};
    bool timersFromFirstPacket = false;
    ClientSide clientSide = {};
};

// --delay, --bandwidth, --queue: the same for both directions.
void AddSymmetricOptions(Options& options, Link& link);
// --delay, and rate, queue and delay of each direction.
void AddAsymmetricOptions(Options& options, Link& link);
// Both of them.
void AddGeometryOptions(Options& options, Link& link);
// Uniform and Gilbert-Elliott loss of each direction.
void AddLossOptions(Options& options, Link& link);
// Queue discipline, jitter, reordering and duplication of each direction.
void AddDisturbanceOptions(Options& options, Link& link);
// --timers-from.
void AddTimerOptions(Options& options, Link& link);
// What every scenario has: protocol, queue mode, seed, profiles, capacity on demand, UDP cross traffic, and the link at the
// client's side.
void AddCommonOptions(Options& options, Link& link);

// One line of standard error for all that is wrong with the options or missing in the link, and the end, status 2.
void FailIfFaulty(const Link& link, const Options& options);

}  // namespace quicsat

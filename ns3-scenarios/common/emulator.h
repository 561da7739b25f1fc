// A scenario's frame: two packet sockets with an ns-3 point-to-point link between them, traces and a report.
#pragma once

#include "direction.h"

#include <string>

namespace ns3 {
class CommandLine;
}

namespace quicsat {

// All that a scenario can say of its link. Forward: server to client; back: client to server.
struct Link {
    std::string scenario;
    Direction forward;
    Direction back;
    std::string queueMode = "exact";
    uint32_t paperExtra = 0;  // packets that the buffer holds beyond `queue` in queue mode "paper"
    uint32_t seed = 1;
};

// Adds the options that every scenario has: loss per direction, queue mode and seed.
void AddCommonOptions(ns3::CommandLine& command, Link& link);

// Checks the link, waits for the server, carries packets until SIGTERM or SIGINT, and leaves traces and report in /logs.
// Returns the exit status.
int Emulate(Link link);

}  // namespace quicsat

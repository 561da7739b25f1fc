// A scenario's frame: two packet sockets with an ns-3 point-to-point link between them, traces and a report.
#pragma once

#include "direction.h"
#include "options.h"

#include <string>

namespace quicsat {

// All that a scenario can say of its link. Forward: server to client; back: client to server.
struct Link {
    std::string scenario;
    uint32_t paperExtra = 0;  // packets that the buffer holds beyond `queue` in queue mode "paper"
    Direction forward = {};
    Direction back = {};
    std::string queueMode = "exact";
    uint32_t seed = 1;
};

// Adds the options that every scenario has: loss per direction, queue mode and seed.
void AddCommonOptions(Options& options, Link& link);

// Checks the link, waits for the server, carries packets until SIGTERM or SIGINT, and leaves traces and report in /logs.
// Returns 0 or ends the process with 2 (bad options), 3 (the server was silent) or 4 (the environment is to blame).
int Emulate(const Link& link, const Options& options);

}  // namespace quicsat

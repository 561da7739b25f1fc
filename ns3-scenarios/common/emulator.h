// A scenario's frame: two packet sockets with an ns-3 point-to-point link between them, traces and a report.
#pragma once

#include "link.h"

namespace quicsat {

// Checks the link, waits for the server, carries packets until SIGTERM or SIGINT, and leaves traces and report in /logs.
// Returns 0 or ends the process with 2 (bad options), 3 (the server was silent) or 4 (the environment is to blame).
int Emulate(const Link& link, const Options& options);

}  // namespace quicsat

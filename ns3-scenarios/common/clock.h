// The simulation's clock: events happen when their time has come on the machine's clock, and packets when the kernel
// got them. One thread waits for both; ns-3's own real-time simulator needs one more for each socket, and wakes it and
// itself for each packet.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>

namespace quicsat {

// What a clock of the kernel shows, in nanoseconds.
int64_t Nanoseconds(clockid_t clock);

// Makes the simulation keep to the machine's clock; before the first event is scheduled.
void FollowRealTime();

// Calls `read` whenever `descriptor` is readable; it must not block, and may schedule events that are due already.
void WhenReadable(int descriptor, std::function<void()> read);

// Runs the simulation, whose time 0 is now, until it is stopped.
void RunInRealTime();

// Nanoseconds since the simulation began, on the monotonic clock, which nobody sets; of now, or of a moment on that clock.
int64_t RealTime();
int64_t RealTime(int64_t monotonic);

}  // namespace quicsat

// How late frames leave: the difference between the time at which a frame is due and the time at which it is sent.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <vector>

namespace quicsat {

// The delay of one frame beyond which the link is no longer what it is meant to be: 10 ms, or 5 % of the round trip's
// propagation delay if that is more. In nanoseconds, as all times here.
int64_t LateBound(int64_t roundTripDelay);

// Memory grows with time, not with frames: at most one row and one stall per direction and interval are kept.
class Lateness {
  public:
    explicit Lateness(int64_t bound) : m_bound(bound) {}

    // A frame that was due at `due` is handed to the kernel at `sent`; times count from the start of the simulation.
    void Sent(bool forward, int64_t due, int64_t sent);
    // The value of "lateness" in link.json; `started` is the start of the simulation, since 1970.
    void Write(std::ostream& out, int64_t started) const;

  private:
    static constexpr int kBinsPerDecade = 20, kDecades = 8;  // from 1 us to 100 s
    struct Row {
        uint64_t frames = 0;
        int64_t largest = 0;
    };
    struct Way {
        uint64_t frames = 0, late = 0;
        int64_t largest = 0;
        std::array<uint64_t, kBinsPerDecade * kDecades> bins = {};
        std::vector<Row> rows;
    };
    // Frames later than the bound whose times from `due` to `sent` overlap, and the union of these times.
    struct Stall {
        int64_t begin, end;
        uint64_t forward, back;
        int64_t largest;
    };

    static int64_t Percentile(const Way& way, double share);
    static int64_t UpperEdge(size_t bin);
    static void WriteWay(std::ostream& out, const char* name, const Way& way);

    int64_t m_bound;
    Way m_forward, m_back;
    std::vector<Stall> m_stalls;
};

}  // namespace quicsat

#include "clock.h"

#include "ns3/map-scheduler.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <poll.h>
#include <sys/prctl.h>
#include <utility>
#include <vector>

using namespace ns3;

namespace quicsat {

namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Clock {
    bool running = false;
    int64_t origin = 0;  // on the monotonic clock
    std::vector<pollfd> descriptors;
    std::vector<std::function<void()>> readers;  // in the same order
};
Clock g_clock;

// Reads what comes within `patience` nanoseconds, and comes back after the first of it; false if nothing came.
bool Read(int64_t patience) {
    const timespec rest = {patience / kSecond, patience % kSecond};
    const int ready = ppoll(g_clock.descriptors.data(), g_clock.descriptors.size(), &rest, nullptr);
    for (size_t index = 0; ready > 0 && index < g_clock.readers.size(); ++index) {
        if (g_clock.descriptors[index].revents) {
            g_clock.readers[index]();
        }
    }
    return ready != 0;  // a signal, too, is a reason to look again
}

// Gives the next event away when its time has come, and not before all packets that came earlier have become events.
class RealTimeScheduler : public MapScheduler {
  public:
    static TypeId GetTypeId() {
        static const TypeId type =
            TypeId("quicsat::RealTimeScheduler").SetParent<MapScheduler>().AddConstructor<RealTimeScheduler>();
        return type;
    }

    Event RemoveNext() override {
        while (g_clock.running) {
            const int64_t rest = static_cast<int64_t>(PeekNext().key.m_ts) - RealTime();
            if (!Read(std::max<int64_t>(rest, 0)) || rest <= 0) {
                break;
            }
        }
        return MapScheduler::RemoveNext();
    }
};
NS_OBJECT_ENSURE_REGISTERED(RealTimeScheduler);

}  // namespace

int64_t Nanoseconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * kSecond + now.tv_nsec;
}

void FollowRealTime() {
    ObjectFactory factory;
    factory.SetTypeId(RealTimeScheduler::GetTypeId());
    Simulator::SetScheduler(factory);
}

void WhenReadable(int descriptor, std::function<void()> read) {
    g_clock.descriptors.push_back({descriptor, POLLIN, 0});
    g_clock.readers.push_back(std::move(read));
}

void RunInRealTime() {
    prctl(PR_SET_TIMERSLACK, 1);  // without real-time priority Linux would wake us up to 50 us late
    g_clock.origin = Nanoseconds(CLOCK_MONOTONIC);
    g_clock.running = true;
    Simulator::Run();
    g_clock.running = false;
}

int64_t RealTime() {
    return RealTime(Nanoseconds(CLOCK_MONOTONIC));
}

int64_t RealTime(int64_t monotonic) {
    return monotonic - g_clock.origin;
}

}  // namespace quicsat

// Rate, delay and loss of one direction over time: steps, each of which holds until the next.
#pragma once

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace quicsat {

// From `time` on; what is not set is as the link has it.
struct Step {
    int64_t time = 0;  // of the profile, nanoseconds
    std::optional<ns3::DataRate> rate = {};
    std::optional<ns3::Time> delay = {};
    std::optional<double> loss = {};  // share of the transfer's packets, beside the link's own loss
};

struct Profile {
    std::vector<Step> steps = {};          // the first at time 0
    std::optional<ns3::Time> period = {};  // after which it begins again; without it, the last step holds
    ns3::Time start = ns3::Time();         // of the profile, at the client's first packet
    explicit operator bool() const { return !steps.empty(); }
};

// The steps in a file of lines "time rate delay loss" in nanoseconds, bit/s, nanoseconds and shares, each a number or
// "-"; throws std::invalid_argument with what it expects instead.
std::vector<Step> ReadSteps(const std::string& path);
// What is wrong with a profile as a whole, e.g. a period that is over before its last step; empty if nothing is.
std::string FaultOf(const Profile& profile);

// Applies a profile: its step of the start until it begins, then all steps in turn.
class Player {
  public:
    // `apply` a step; `profile` has to last.
    Player(const Profile& profile, std::function<void(const Step&)> apply);
    void Begin();
    // The value of "profile" in link.json; `started` is the start of the simulation, since 1970.
    void Write(std::ostream& out, int64_t started) const;

  private:
    void Apply();
    void ScheduleNext();

    const Profile& m_profile;
    std::function<void(const Step&)> m_apply;
    size_t m_index = 0;    // of the step that holds
    uint64_t m_turn = 0;   // of the profile
    int64_t m_origin = 0;  // when its time was 0 in the first turn, in the simulation
    std::optional<int64_t> m_begun;
    std::vector<std::pair<int64_t, size_t>> m_applied;  // when, which
    uint64_t m_count = 0;
};

}  // namespace quicsat

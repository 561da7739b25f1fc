// What happens to packets where they arrive: they may meet a dark link, be on a list, get lost, be corrupted, be held
// back, or come twice.
#pragma once

#include "direction.h"
#include "nat.h"
#include "packet.h"

#include "ns3/error-model.h"
#include "ns3/event-id.h"
#include "ns3/net-device.h"
#include "ns3/point-to-point-net-device.h"

#include <cstdint>
#include <list>
#include <random>

namespace quicsat {

// Chance that hits at most so many in a row.
class Cap {
  public:
    explicit Cap(uint32_t longest = 0) : m_longest(longest) {}
    bool Admit(bool hit) {
        m_row = hit && (m_longest == 0 || m_row < m_longest) ? m_row + 1 : 0;
        return m_row > 0;
    }

  private:
    uint32_t m_longest, m_row = 0;
};

// The jitter of a packet; two numbers are drawn, whatever the shape.
ns3::Time DrawJitter(const Jitter& jitter, std::mt19937_64& random);
void CountJitter(ns3::Time delay, Counters& counters);

// The receiving end of one direction. The n-th packet of the transfer meets the same fate for the same seed, whenever
// it comes and however this is compiled.
class Impairment : public ns3::ErrorModel {
  public:
    static ns3::TypeId GetTypeId();
    // `stream`: another one for each direction. `now`: what holds at the moment. `nat`: the one that the packets come
    // to, or nullptr. `device`: the one whose error model this is. Pointers have to last.
    void Configure(const Direction& direction, const Subject& subject, uint32_t seed, uint32_t stream,
                   Counters* counters, const Conditions* now, Nat* nat, ns3::PointToPointNetDevice* device);

  private:
    // A packet whose place in the order is to change.
    struct Arrival {
        ns3::Ptr<ns3::Packet> packet;
        uint64_t index;
        bool twice;
    };
    struct Held {
        Arrival arrival;
        uint32_t gap;  // packets that have to pass
        ns3::EventId latest;
    };

    bool DoCorrupt(ns3::Ptr<ns3::Packet> packet) override;
    void DoReset() override {}
    bool Lost();
    void Corrupt(ns3::Packet& packet, double where, double what);
    void Disturb(const ns3::Packet& packet, ns3::Time jitter, bool late, bool twice);
    void Pass(Arrival arrival);
    void Deliver(const Arrival& arrival);
    void Receive(ns3::Ptr<ns3::Packet> packet);
    void Release(uint64_t index);
    bool Enters(ns3::Packet& packet);

    Direction m_direction;
    Subject m_subject;
    Counters* m_counters = nullptr;
    const Conditions* m_now = nullptr;
    Nat* m_nat = nullptr;
    uint64_t m_index = 0;
    bool m_bad = false;
    Cap m_lossCap, m_corruptionCap;
    ns3::PointToPointNetDevice* m_device = nullptr;
    bool m_receiving = false;    // a packet whose fate is known
    ns3::Time m_last;            // when the last packet in order arrives
    uint64_t m_latestIndex = 0;  // of the packets that have arrived
    std::list<Held> m_held;      // until others have passed
    // not ns-3's own generator: its seeds are multiples of one another, so that small seeds lose the same packets
    std::mt19937_64 m_losses, m_corruptions, m_jitters, m_reorderings, m_duplications, m_profileLosses;
};

}  // namespace quicsat

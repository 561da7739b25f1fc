// What happens to packets where they arrive: they may meet a dark link, be on a list, get lost, or be corrupted.
#pragma once

#include "direction.h"
#include "nat.h"
#include "packet.h"

#include "ns3/error-model.h"

#include <cstdint>
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

// The receiving end of one direction. The n-th packet of the transfer meets the same fate for the same seed, whenever
// it comes and however this is compiled.
class Impairment : public ns3::ErrorModel {
  public:
    static ns3::TypeId GetTypeId();
    // `stream`: another one for each direction. `dark`: whether nothing arrives now. `nat`: the one that the packets
    // come to, or nullptr. Pointers have to last.
    void Configure(const Direction& direction, const Subject& subject, uint32_t seed, uint32_t stream,
                   Counters* counters, const bool* dark, Nat* nat);

  private:
    bool DoCorrupt(ns3::Ptr<ns3::Packet> packet) override;
    void DoReset() override {}
    bool Lost();
    void Corrupt(ns3::Packet& packet, double where, double what);

    Direction m_direction;
    Subject m_subject;
    Counters* m_counters = nullptr;
    const bool* m_dark = nullptr;
    Nat* m_nat = nullptr;
    uint64_t m_index = 0;
    bool m_bad = false;
    Cap m_lossCap, m_corruptionCap;
    // not ns-3's own generator: its seeds are multiples of one another, so that small seeds lose the same packets
    std::mt19937_64 m_losses, m_corruptions;
};

}  // namespace quicsat

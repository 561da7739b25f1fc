// What happens to packets on their way in one direction of the link.
#pragma once

#include "ns3/data-rate.h"
#include "ns3/error-model.h"
#include "ns3/nstime.h"

#include <cstdint>
#include <optional>
#include <random>
#include <string>

namespace quicsat {

// Loss of UDP packets in one direction; all shares 0..1.
struct Loss {
    double rate = 0;       // independent loss
    double goodToBad = 0;  // Gilbert-Elliott: every UDP packet that arrives in the bad state is lost
    double badToGood = 1;
    bool IsBursty() const { return goodToBad > 0; }
};

// How one direction is configured.
struct Direction {
    std::optional<ns3::Time> delay = {};
    ns3::DataRate rate = {};  // 0 until it is given
    uint32_t queue = 0;       // packets that may wait while another one is on its way out; 0 until it is given
    Loss loss = {};
};

// UDP packets of one direction.
struct Counters {
    uint64_t received = 0;    // from the sender
    uint64_t delivered = 0;   // to the receiver
    uint64_t queueDrops = 0;
    uint64_t lossDrops = 0;
    // Negative if packets were delivered that were never received whole, e.g. because an endpoint does not cut them.
    int64_t InFlight() const { return static_cast<int64_t>(received - delivered - queueDrops - lossDrops); }
};

// Drops UDP packets at the receiving end of the link. The n-th UDP packet of a direction meets the same fate for the
// same seed, whenever it comes and however it is compiled.
class UdpLoss : public ns3::ErrorModel {
  public:
    static ns3::TypeId GetTypeId();
    void Configure(const Loss& loss, std::seed_seq seed, Counters* counters);

  private:
    double Draw();
    bool DoCorrupt(ns3::Ptr<ns3::Packet> packet) override;
    void DoReset() override {}

    Loss m_loss;
    bool m_bad = false;
    Counters* m_counters = nullptr;
    // not ns-3's own generator: its seeds are multiples of one another, so that small seeds lose the same packets
    std::mt19937_64 m_random;
};

// Whether an IP packet (from its first byte) carries UDP, behind IPv6 extension headers too; each fragment counts.
bool IsUdp(const uint8_t* bytes, uint32_t size);
// The same for a packet with `offset` bytes of link header in front.
bool IsUdp(ns3::Ptr<const ns3::Packet> packet, uint32_t offset);

}  // namespace quicsat

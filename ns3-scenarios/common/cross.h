// Watches a TCP flow from the server's side to the client's that competes with the transfer.
#pragma once

#include "ns3/packet.h"

#include <cstdint>
#include <ostream>
#include <vector>

namespace quicsat {

class CrossFlow {
  public:
    // A packet of the flow on its way from the receiver, behind `linkHeader` bytes, at `now` (nanoseconds since 1970):
    // it tells what has been received.
    void Returned(const ns3::Packet& packet, uint32_t linkHeader, int64_t now);
    // A packet of the flow that was handed to the receiver.
    void Delivered(const ns3::Packet& packet, uint32_t linkHeader);
    void Dropped() { ++m_queueDrops; }
    // The report as a JSON object.
    void Write(std::ostream& out) const;

  private:
    uint32_t m_highest = 0;  // sequence number up to which the receiver has everything
    bool m_open = false;
    int64_t m_begin = 0, m_end = 0;
    uint64_t m_acknowledged = 0, m_delivered = 0, m_queueDrops = 0;
    std::vector<uint64_t> m_perSecond;
};

}  // namespace quicsat

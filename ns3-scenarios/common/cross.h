// Watches a TCP flow from the server's side to the client's that competes with the transfer.
#pragma once

#include "ns3/packet.h"

#include <cstdint>
#include <ostream>
#include <vector>

namespace quicsat {

// Only the connection counts whose handshake the simulator saw: packets of an earlier one, which its kernel may still
// repeat, have another port.
class CrossFlow {
  public:
    // A packet to or from the receiver's port on its way from the receiver, behind `linkHeader` bytes, at `now` (nanoseconds since 1970):
    // it tells what has been received.
    void Returned(const ns3::Packet& packet, uint32_t linkHeader, int64_t now);
    // A packet that was handed to the receiver.
    void Delivered(const ns3::Packet& packet, uint32_t linkHeader);
    void Dropped() { ++m_queueDrops; }
    // The report as a JSON object, once the simulation has stopped. Its goodput is what was acknowledged after the first
    // acknowledgement, over the time from then until the stop; 0 if there was no other.
    void Write(std::ostream& out) const;

  private:
    uint32_t m_highest = 0;  // sequence number up to which the receiver has everything
    uint16_t m_port = 0;     // the sender's; 0 before the handshake
    int64_t m_begin = 0, m_end = 0;
    int64_t m_simulatedBegin = 0;  // m_begin in simulated time
    uint64_t m_first = 0;          // bytes of the first acknowledgement
    uint64_t m_acknowledged = 0, m_delivered = 0, m_queueDrops = 0;
    std::vector<uint64_t> m_perSecond;
};

}  // namespace quicsat

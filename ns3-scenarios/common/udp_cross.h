// UDP packets of others at a constant rate, which share the queue and the link with the transfer.
#pragma once

#include "ns3/data-rate.h"
#include "ns3/net-device.h"
#include "ns3/nstime.h"
#include "ns3/packet.h"

#include <cstdint>
#include <ostream>

namespace quicsat {

struct UdpCross {
    ns3::DataRate rate = {};  // of its IP packets; 0: there is none
    uint32_t size = 540;      // bytes of an IP packet
    ns3::Time start = {};     // after the client's first packet
    explicit operator bool() const { return rate.GetBitRate() > 0; }
};

// Puts such packets into the queue of one end of the link. They have the link's own addresses, end at the other end of
// the link, and are in no trace.
class UdpCrossSource {
  public:
    UdpCrossSource(const UdpCross& traffic, ns3::Ptr<ns3::NetDevice> device, const char* from, const char* to)
        : m_traffic(traffic), m_device(device), m_from(from), m_to(to) {}
    // The client's first packet arrives; later calls have no effect.
    void Begin();
    void Dropped() { ++m_dropped; }
    // Whether a packet, behind the link's header, is of UDP cross traffic.
    static bool IsOne(const ns3::Packet& packet);
    // The report as a JSON object; `delivered`: packets that the other end got; `started`: wall clock at simulation time
    // 0, in nanoseconds since 1970.
    void Write(std::ostream& out, uint64_t delivered, int64_t started) const;

  private:
    void Send();

    UdpCross m_traffic;
    ns3::Ptr<ns3::NetDevice> m_device;
    const char *m_from, *m_to;
    ns3::Time m_first, m_last;  // when the first and the last packet are sent
    bool m_begun = false;
    uint64_t m_sent = 0, m_dropped = 0;
};

}  // namespace quicsat

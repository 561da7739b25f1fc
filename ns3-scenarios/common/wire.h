// The link itself: a transmitter at each end, whose rate may change while it sends, and the wire between them, whose
// delay may change, too.
#pragma once

#include "ns3/data-rate.h"
#include "ns3/event-id.h"
#include "ns3/nstime.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/point-to-point-net-device.h"

#include <cstdint>
#include <functional>

namespace quicsat {

// A point-to-point wire with a delay of its own per direction, and perhaps a NAT at its left end. It keeps the order of
// packets: after the delay has become shorter, a packet arrives with the one before it at the earliest.
class Wire : public ns3::PointToPointChannel {
  public:
    void SetLeft(ns3::Ptr<ns3::PointToPointNetDevice> left) { m_left = left; }
    // For packets that leave a transmitter from now on.
    void SetDelay(bool fromLeft, ns3::Time delay) { Of(fromLeft).delay = delay; }
    // `leave`: changes a packet that leaves the left end; whether it may go.
    void SetNat(std::function<bool(ns3::Packet&)> leave) { m_leave = std::move(leave); }

    // The first bit of a packet leaves `source`; whether it may go.
    bool Begin(ns3::Packet& packet, ns3::Ptr<ns3::PointToPointNetDevice> source);
    // Its last bit has left.
    void Carry(ns3::Ptr<ns3::Packet> packet, ns3::Ptr<ns3::PointToPointNetDevice> source);

  private:
    struct Way {
        ns3::Time delay, last;  // when the last packet arrives
    };
    Way& Of(bool fromLeft) { return fromLeft ? m_fromLeft : m_fromRight; }

    ns3::Ptr<ns3::PointToPointNetDevice> m_left;
    Way m_fromLeft, m_fromRight;
    std::function<bool(ns3::Packet&)> m_leave;
};

// An end of the wire: sends what its queue holds, one packet after another. A change of the rate applies to the rest of
// the packet that is being sent; at a rate of 0 everything waits.
class Transmitter : public ns3::PointToPointNetDevice {
  public:
    static ns3::TypeId GetTypeId();
    void SetRate(ns3::DataRate rate);
    // Bytes that have not left yet, with the rest of the packet that is being sent.
    uint64_t Backlog() const;
    bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& destination, uint16_t protocol) override;

  private:
    void Start();
    void Schedule();
    void Complete();
    double Rest() const;
    uint64_t Waiting() const;

    ns3::DataRate m_rate;
    ns3::Ptr<ns3::Packet> m_packet;  // that is being sent
    bool m_goes = true;              // and will arrive
    double m_bits = 0;               // of it that were left at `m_since`
    ns3::Time m_since;
    ns3::EventId m_end;
};

}  // namespace quicsat

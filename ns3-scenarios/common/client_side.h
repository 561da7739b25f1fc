// The link between the client and the gateway next to it. Frames pass it whole, so neither of them sees it.
#pragma once

#include "direction.h"
#include "frames.h"
#include "impairment.h"
#include "packet.h"

#include <cstdint>

namespace quicsat {

// One direction: a frame that comes to one device leaves at the other one after the delay, unless it is lost.
class Passage {
  public:
    // `stream`: of the random numbers.
    Passage(const Direction& direction, const Subject& subject, uint32_t seed, uint32_t stream,
            ns3::Ptr<FrameDevice> from, ns3::Ptr<FrameDevice> to);
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;
    const Counters& Count() const { return m_counters; }

  private:
    void Take(const ns3::Packet& frame);
    void Leave(ns3::Ptr<ns3::Packet> frame, bool subject);

    ns3::Time m_delay;
    Subject m_subject;
    ns3::Ptr<FrameDevice> m_to;
    ns3::Ptr<Impairment> m_impairment;
    Counters m_counters;
    Conditions m_always;
};

}  // namespace quicsat

// Capacity on demand: a terminal requests what it has to send, and gets slots of later frames.
#pragma once

#include "wire.h"

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

#include <cstdint>
#include <ostream>

namespace quicsat {

// Volume-based requests (VBDC) and a constant assignment (CRA), as ETSI TR 101 790 and EN 301 545-2 name them.
struct Demand {
    ns3::Time frame;              // the unit of assignments
    ns3::Time delay;              // from a request to the first frame that it can give
    uint32_t slot = 1;            // bytes that a slot carries
    ns3::DataRate constant = {};  // assigned without requests, in whole slots per frame
    explicit operator bool() const { return frame.IsStrictlyPositive(); }
};

// At the beginning of each frame, the terminal requests what waits, without what it has requested before and what the
// constant assignment of this frame carries. The slots of a frame are at its beginning, one after another, at the link's
// rate; then nothing is sent until the next frame.
class Terminal {
  public:
    Terminal(const Demand& demand, ns3::Ptr<Transmitter> transmitter) : m_demand(demand), m_transmitter(transmitter) {}
    // The link's rate, which the slots have, from the next frame on.
    void SetRate(ns3::DataRate rate) { m_rate = rate; }
    void Begin();
    // The value of "demand" in link.json.
    void Write(std::ostream& out) const;

  private:
    void Frame();
    void Grant(uint64_t bytes) { m_credit += bytes; }

    Demand m_demand;
    ns3::Ptr<Transmitter> m_transmitter;
    ns3::DataRate m_rate;
    uint64_t m_pending = 0;  // bytes that were requested and are not assigned yet
    uint64_t m_credit = 0;   // of these, bytes that the request's delay has passed for
    uint64_t m_frames = 0, m_requests = 0, m_requested = 0, m_assigned = 0, m_constant = 0;
};

}  // namespace quicsat

// The link between the client and the gateway next to it. Frames pass it whole, so neither of them sees it.
#pragma once

#include "direction.h"
#include "frames.h"
#include "impairment.h"
#include "packet.h"
#include "queue.h"

#include <cstdint>
#include <memory>
#include <random>

namespace quicsat {

// One direction: a frame that comes to one device leaves at the other one after the delay, unless it is lost. With a
// rate, IP packets wait in a queue and leave it one after another; their size is that of the IP packet and 2 bytes, as on
// the link itself.
class Passage {
  public:
    // `stream`: of the random numbers.
    Passage(const Direction& direction, const Subject& subject, uint32_t seed, uint32_t stream,
            ns3::Ptr<FrameDevice> from, ns3::Ptr<FrameDevice> to);
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;
    const Counters& Count() const { return m_counters; }

  private:
    // Jitter of the transfer's packets.
    struct Late {
        Jitter jitter;
        std::mt19937_64 random;
        ns3::Time last;       // when the last packet in order arrives
        uint64_t index = 0;   // of the packets that have come
        uint64_t latest = 0;  // of those that have arrived
    };

    bool IsSubject(const ns3::Packet& frame) const;
    void MakeQueue(const Direction& direction, uint32_t stream);
    void MakeLate(const Jitter& jitter, uint32_t seed, uint32_t stream);
    void Take(const ns3::Packet& frame);
    void Send();
    void Sent(ns3::Ptr<ns3::Packet> frame);
    void Pass(ns3::Ptr<ns3::Packet> frame);
    void Leave(ns3::Ptr<ns3::Packet> frame, bool subject);
    void PassLate(ns3::Ptr<ns3::Packet> frame);
    void LeaveLate(ns3::Ptr<ns3::Packet> frame, uint64_t index);

    ns3::Time m_delay;
    ns3::DataRate m_rate;
    Subject m_subject;
    bool m_busy = false;                        // a packet is being sent
    ns3::Ptr<ns3::Queue<ns3::Packet>> m_queue;  // nullptr without a rate
    std::unique_ptr<Late> m_late;               // nullptr without jitter
    ns3::Ptr<FrameDevice> m_to;
    ns3::Ptr<Impairment> m_impairment;
    Counters m_counters;
    Conditions m_always;
};

}  // namespace quicsat

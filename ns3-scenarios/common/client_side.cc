#include "client_side.h"

#include "ns3/simulator.h"

using namespace ns3;

namespace quicsat {

Passage::Passage(const Direction& direction, const Subject& subject, uint32_t seed, uint32_t stream,
                 Ptr<FrameDevice> from, Ptr<FrameDevice> to)
    : m_delay(*direction.delay), m_subject(subject), m_to(to), m_impairment(CreateObject<Impairment>()) {
    m_impairment->Configure(direction, subject, seed, stream, &m_counters, &m_always, nullptr, nullptr);
    from->WhenSeen([this](const Packet& frame) { Take(frame); });
}

void Passage::Take(const Packet& frame) {
    const bool subject = m_subject.Of(frame, kEthernetHeader) == Kind::Subject;
    m_counters.received += subject;
    const auto packet = frame.Copy();
    if (subject) {
        packet->RemoveAtStart(kEthernetHeader - kPppHeader);  // the EtherType takes the place of PPP's header
        if (m_impairment->IsCorrupt(packet)) {
            return;
        }
    }
    Simulator::Schedule(m_delay, &Passage::Leave, this, frame.Copy(), subject);
}

void Passage::Leave(Ptr<Packet> frame, bool subject) {
    m_counters.delivered += subject;
    m_to->SendFrame(*frame);
}

}  // namespace quicsat

#include "client_side.h"

#include "ns3/ipv4-l3-protocol.h"
#include "ns3/ipv6-l3-protocol.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <array>

using namespace ns3;

namespace quicsat {

namespace {

constexpr uint32_t kAddresses = kEthernetHeader - kPppHeader;  // the EtherType takes the place of PPP's header

// All but ARP, which finds the neighbours whatever waits in front of it.
bool IsIp(const Packet& frame) {
    std::array<uint8_t, kEthernetHeader> header = {};
    frame.CopyData(header.data(), header.size());
    const uint16_t type = static_cast<uint16_t>(header[kAddresses] << 8 | header[kAddresses + 1]);
    return type == Ipv4L3Protocol::PROT_NUMBER || type == Ipv6L3Protocol::PROT_NUMBER;
}

}  // namespace

Passage::Passage(const Direction& direction, const Subject& subject, uint32_t seed, uint32_t stream,
                 Ptr<FrameDevice> from, Ptr<FrameDevice> to)
    : m_delay(*direction.delay),
      m_rate(direction.rate),
      m_subject(subject),
      m_to(to),
      m_impairment(CreateObject<Impairment>()) {
    if (direction.jitter.size.IsZero()) {
        m_impairment->Configure(direction, subject, seed, stream, &m_counters, &m_always, nullptr, nullptr);
    } else {
        MakeLate(direction.jitter, seed, stream);
        Direction punctual = direction;  // what arrives later leaves as a whole frame
        punctual.jitter = {};
        m_impairment->Configure(punctual, subject, seed, stream, &m_counters, &m_always, nullptr, nullptr);
    }
    if (m_rate.GetBitRate() > 0) {
        MakeQueue(direction, stream);
    }
    from->WhenSeen([this](const Packet& frame) { Take(frame); });
}

bool Passage::IsSubject(const Packet& frame) const {
    return m_subject.Of(frame, kEthernetHeader) == Kind::Subject;
}

void Passage::MakeQueue(const Direction& direction, uint32_t stream) {
    m_queue = quicsat::MakeQueue(direction, kEthernetHeader, 0, stream,
                                 [this](const Packet& frame) { m_counters.ecnMarks += IsSubject(frame); });
    const auto drop = [this](Ptr<const Packet> frame) { m_counters.queueDrops += IsSubject(*frame); };
    m_queue->TraceConnectWithoutContext("Drop", Callback<void, Ptr<const Packet>>(drop));
}

// Its random numbers are others than those of its losses, which have the same seed and stream.
void Passage::MakeLate(const Jitter& jitter, uint32_t seed, uint32_t stream) {
    m_late = std::make_unique<Late>(Late{jitter, {}, {}});
    std::seed_seq jitters = {seed, stream, 4U};
    m_late->random.seed(jitters);
}

void Passage::Take(const Packet& frame) {
    m_counters.received += IsSubject(frame);
    if (!m_queue || !IsIp(frame)) {
        Pass(frame.Copy());
    } else if (m_queue->Enqueue(frame.Copy()) && !m_busy) {
        Send();
    }
}

// Sends the next frame of the queue, if there is one.
void Passage::Send() {
    const auto frame = m_queue->Dequeue();
    m_busy = frame != nullptr;
    if (m_busy) {
        Simulator::Schedule(m_rate.CalculateBytesTxTime(frame->GetSize() - kAddresses), &Passage::Sent, this, frame);
    }
}

void Passage::Sent(Ptr<Packet> frame) {
    Pass(frame);
    Send();
}

void Passage::Pass(Ptr<Packet> frame) {
    const bool subject = IsSubject(*frame);
    if (subject) {
        const auto packet = frame->Copy();
        packet->RemoveAtStart(kAddresses);
        if (m_impairment->IsCorrupt(packet)) {
            return;
        }
    }
    if (subject && m_late) {
        PassLate(frame);
    } else {
        Simulator::Schedule(m_delay, &Passage::Leave, this, frame, subject);
    }
}

void Passage::PassLate(Ptr<Packet> frame) {
    const Time jitter = DrawJitter(m_late->jitter, m_late->random), now = Simulator::Now();
    CountJitter(jitter, m_counters);
    const Time due = now + m_delay + jitter;
    m_late->last = m_late->jitter.overtake ? due : std::max(m_late->last, due);
    Simulator::Schedule(m_late->last - now, &Passage::LeaveLate, this, frame, ++m_late->index);
}

void Passage::LeaveLate(Ptr<Packet> frame, uint64_t index) {
    m_counters.outOfOrder += index < m_late->latest;
    m_late->latest = std::max(m_late->latest, index);
    Leave(frame, true);
}

void Passage::Leave(Ptr<Packet> frame, bool subject) {
    m_counters.delivered += subject;
    m_to->SendFrame(*frame);
}

}  // namespace quicsat

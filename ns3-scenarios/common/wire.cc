#include "wire.h"

#include "queue.h"

#include "ns3/ipv4-l3-protocol.h"
#include "ns3/node.h"
#include "ns3/ppp-header.h"
#include "ns3/queue.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace ns3;

namespace quicsat {

namespace {

constexpr uint16_t kPppIpv4 = 0x0021, kPppIpv6 = 0x0057;  // RFC 1332, section 1; RFC 5072, section 3
constexpr double kRounding = 0.5;                         // bits: less than this left is a whole packet
constexpr double kBitsPerByte = 8;

}  // namespace

bool Wire::Begin(Packet& packet, Ptr<PointToPointNetDevice> source) {
    return source != m_left || !m_leave || m_leave(packet);
}

void Wire::Carry(Ptr<Packet> packet, Ptr<PointToPointNetDevice> source) {
    const bool fromLeft = source == m_left;
    const auto target = GetPointToPointDevice(fromLeft ? 1 : 0);
    Way& way = Of(fromLeft);
    way.last = std::max(way.last, Simulator::Now() + way.delay);
    Simulator::ScheduleWithContext(target->GetNode()->GetId(), way.last - Simulator::Now(),
                                   &PointToPointNetDevice::Receive, target, packet);
}

NS_OBJECT_ENSURE_REGISTERED(Transmitter);

TypeId Transmitter::GetTypeId() {
    static TypeId id = TypeId("quicsat::Transmitter").SetParent<PointToPointNetDevice>().AddConstructor<Transmitter>();
    return id;
}

bool Transmitter::Send(Ptr<Packet> packet, const Address&, uint16_t protocol) {
    PppHeader header;
    header.SetProtocol(protocol == Ipv4L3Protocol::PROT_NUMBER ? kPppIpv4 : kPppIpv6);
    packet->AddHeader(header);
    if (!GetQueue()->Enqueue(packet)) {
        return false;
    }
    if (!m_packet) {
        Start();
    }
    return true;
}

void Transmitter::SetRate(DataRate rate) {
    m_bits = Rest();
    m_since = Simulator::Now();
    m_rate = rate;
    if (m_packet) {
        m_end.Cancel();
        Schedule();
    } else if (GetQueue() && Waiting() > 0) {
        Start();
    }
}

// Bytes in the queue.
uint64_t Transmitter::Waiting() const {
    const auto managed = DynamicCast<ManagedQueue>(GetQueue());
    return managed ? managed->Backlog() : GetQueue()->GetNBytes();
}

uint64_t Transmitter::Backlog() const {
    return Waiting() + static_cast<uint64_t>(std::ceil(Rest() / kBitsPerByte));
}

// Bits of the packet that is being sent that have not left.
double Transmitter::Rest() const {
    const double sent = static_cast<double>(m_rate.GetBitRate()) * (Simulator::Now() - m_since).GetSeconds();
    return m_packet ? std::max(m_bits - sent, 0.0) : 0;
}

void Transmitter::Start() {
    const auto next = m_rate.GetBitRate() > 0 ? GetQueue()->Dequeue() : nullptr;
    if (!next) {
        return;
    }
    m_packet = next->Copy();
    m_bits = kBitsPerByte * m_packet->GetSize();
    m_since = Simulator::Now();
    m_goes = DynamicCast<Wire>(GetChannel())->Begin(*m_packet, this);
    m_end = Simulator::Schedule(m_rate.CalculateBytesTxTime(m_packet->GetSize()), &Transmitter::Complete, this);
}

// When the packet that is being sent will have left, at the rate of now.
void Transmitter::Schedule() {
    if (m_bits < kRounding) {
        m_end = Simulator::ScheduleNow(&Transmitter::Complete, this);
    } else if (m_rate.GetBitRate() > 0) {
        m_end = Simulator::Schedule(Seconds(m_bits / static_cast<double>(m_rate.GetBitRate())), &Transmitter::Complete,
                                    this);
    }
}

void Transmitter::Complete() {
    const auto packet = std::exchange(m_packet, nullptr);
    if (m_goes) {
        DynamicCast<Wire>(GetChannel())->Carry(packet, this);
    }
    Start();
}

}  // namespace quicsat

#include "direction.h"

#include "ns3/packet.h"

namespace quicsat {

namespace {
constexpr uint32_t kPppHeader = 2;
constexpr uint8_t kUdp = 17;
}  // namespace

bool IsUdp(const uint8_t* bytes, uint32_t size) {
    if (size >= 20 && bytes[0] >> 4 == 4) {
        return bytes[9] == kUdp;
    }
    return size >= 40 && bytes[0] >> 4 == 6 && bytes[6] == kUdp;
}

bool IsUdp(ns3::Ptr<const ns3::Packet> packet, uint32_t offset) {
    uint8_t head[60];
    const uint32_t size = packet->CopyData(head, sizeof head);
    return size > offset && IsUdp(head + offset, size - offset);
}

NS_OBJECT_ENSURE_REGISTERED(UdpLoss);

ns3::TypeId UdpLoss::GetTypeId() {
    static ns3::TypeId id =
        ns3::TypeId("quicsat::UdpLoss").SetParent<ns3::ErrorModel>().AddConstructor<UdpLoss>();
    return id;
}

void UdpLoss::Configure(const Loss& loss, int64_t stream, Counters* counters) {
    m_loss = loss;
    m_counters = counters;
    m_random = ns3::CreateObject<ns3::UniformRandomVariable>();
    m_random->SetStream(stream);
}

bool UdpLoss::DoCorrupt(ns3::Ptr<ns3::Packet> packet) {
    if (!IsUdp(packet, kPppHeader)) {
        return false;
    }
    // both numbers are drawn for every packet, so that its fate depends on its index alone
    const double transition = m_random->GetValue();
    const double fate = m_random->GetValue();
    m_bad = m_bad ? transition >= m_loss.badToGood : transition < m_loss.goodToBad;
    const bool lost = m_bad || fate < m_loss.rate;
    m_counters->lossDrops += lost;
    return lost;
}

}  // namespace quicsat

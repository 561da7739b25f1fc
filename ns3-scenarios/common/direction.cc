#include "direction.h"

#include "ns3/packet.h"

namespace quicsat {

namespace {
constexpr uint32_t kPppHeader = 2;
constexpr uint32_t kIpv4Header = 20, kIpv6Header = 40, kExtensionUnit = 8;
constexpr uint32_t kLongestHead = 256;  // bytes in which extension headers are looked for
constexpr uint8_t kUdp = 17;
constexpr uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kDestination = 60;

// Length of the IPv6 extension header at `bytes`; 0 if `kind` is none (RFC 8200, section 4).
uint32_t ExtensionSize(uint8_t kind, const uint8_t* bytes) {
    switch (kind) {
        case kHopByHop:
        case kRouting:
        case kDestination:
            return (bytes[1] + 1U) * kExtensionUnit;
        case kFragment:
            return kExtensionUnit;
        default:
            return 0;
    }
}
}  // namespace

bool IsUdp(const uint8_t* bytes, uint32_t size) {
    if (size >= kIpv4Header && bytes[0] >> 4 == 4) {
        return bytes[9] == kUdp;
    }
    if (size < kIpv6Header || bytes[0] >> 4 != 6) {
        return false;
    }
    uint8_t next = bytes[6];
    uint32_t offset = kIpv6Header;
    while (next != kUdp && offset + kExtensionUnit <= size) {
        const uint32_t length = ExtensionSize(next, bytes + offset);
        if (length == 0) {
            return false;
        }
        next = bytes[offset];
        offset += length;
    }
    return next == kUdp;
}

bool IsUdp(ns3::Ptr<const ns3::Packet> packet, uint32_t offset) {
    uint8_t head[kLongestHead];
    const uint32_t size = packet->CopyData(head, sizeof head);
    return size > offset && IsUdp(head + offset, size - offset);
}

NS_OBJECT_ENSURE_REGISTERED(UdpLoss);

ns3::TypeId UdpLoss::GetTypeId() {
    static ns3::TypeId id =
        ns3::TypeId("quicsat::UdpLoss").SetParent<ns3::ErrorModel>().AddConstructor<UdpLoss>();
    return id;
}

void UdpLoss::Configure(const Loss& loss, std::seed_seq seed, Counters* counters) {
    m_loss = loss;
    m_counters = counters;
    m_random.seed(seed);
}

// A number from 0 to less than 1; std::uniform_real_distribution may differ between libraries.
double UdpLoss::Draw() {
    return static_cast<double>(m_random() >> 11) * 0x1p-53;
}

bool UdpLoss::DoCorrupt(ns3::Ptr<ns3::Packet> packet) {
    if (!IsUdp(packet, kPppHeader)) {
        return false;
    }
    // both numbers are drawn for every packet, so that its fate depends on its index alone
    const double transition = Draw();
    const double fate = Draw();
    m_bad = m_bad ? transition >= m_loss.badToGood : transition < m_loss.goodToBad;
    const bool lost = m_bad || fate < m_loss.rate;
    m_counters->lossDrops += lost;
    return lost;
}

}  // namespace quicsat

#include "udp_cross.h"

#include "packet.h"

#include "ns3/ipv4-header.h"
#include "ns3/ipv4-l3-protocol.h"
#include "ns3/simulator.h"
#include "ns3/udp-header.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

using namespace ns3;

namespace quicsat {

namespace {

constexpr uint16_t kDiscard = 9;  // port (RFC 863), as in the QUIC Interop Runner
constexpr uint32_t kHeaders = 28, kIpv4Header = 20, kProtocolAt = 9, kSourceAt = 12, kDestinationPortAt = 22;
constexpr std::array<uint8_t, 3> kLinkNetwork = {193, 167, 50};
constexpr uint8_t kHopLimit = 64;
constexpr double kBitsPerByte = 8, kNanoseconds = 1e9;

}  // namespace

void UdpCrossSource::Begin() {
    if (std::exchange(m_begun, true)) {
        return;
    }
    m_first = Simulator::Now() + m_traffic.start;
    Simulator::Schedule(m_traffic.start, &UdpCrossSource::Send, this);
}

void UdpCrossSource::Send() {
    const auto packet = Create<Packet>(m_traffic.size - kHeaders);
    UdpHeader udp;
    udp.SetSourcePort(kDiscard);
    udp.SetDestinationPort(kDiscard);
    packet->AddHeader(udp);
    Ipv4Header ip;
    ip.SetSource(m_from);
    ip.SetDestination(m_to);
    ip.SetProtocol(kUdp);
    ip.SetTtl(kHopLimit);
    ip.SetPayloadSize(static_cast<uint16_t>(packet->GetSize()));
    ip.EnableChecksum();
    packet->AddHeader(ip);
    m_device->Send(packet, m_device->GetBroadcast(), Ipv4L3Protocol::PROT_NUMBER);
    ++m_sent;
    m_last = Simulator::Now();
    // from the first one on, so that rounding does not add up
    const double passed = static_cast<double>(m_sent) * m_traffic.size * kBitsPerByte * kNanoseconds /
                          static_cast<double>(m_traffic.rate.GetBitRate());
    const Time next = m_first + NanoSeconds(std::llround(passed));
    Simulator::Schedule(next - Simulator::Now(), &UdpCrossSource::Send, this);
}

bool UdpCrossSource::IsOne(const Packet& packet) {
    std::array<uint8_t, kPppHeader + kHeaders> head = {};
    if (packet.CopyData(head.data(), head.size()) < head.size()) {
        return false;
    }
    const uint8_t* const ip = head.data() + kPppHeader;
    return ip[0] == (0x40 | kIpv4Header / 4) && ip[kProtocolAt] == kUdp &&
           std::equal(kLinkNetwork.begin(), kLinkNetwork.end(), ip + kSourceAt) &&
           (ip[kDestinationPortAt] << 8 | ip[kDestinationPortAt + 1]) == kDiscard;
}

void UdpCrossSource::Write(std::ostream& out, uint64_t delivered, int64_t started) const {
    const auto clock = [started](Time time) {
        return static_cast<double>(started + time.GetNanoSeconds()) / kNanoseconds;
    };
    out << "{\"begin\":" << (m_sent ? clock(m_first) : 0) << ",\"end\":" << (m_sent ? clock(m_last) : 0)
        << ",\"sent\":" << m_sent << ",\"queue_drops\":" << m_dropped << ",\"delivered\":" << delivered << "}";
}

}  // namespace quicsat

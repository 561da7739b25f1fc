#include "cross.h"

#include "packet.h"

#include "ns3/simulator.h"

namespace quicsat {

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint32_t kLongestHead = 128;
constexpr uint8_t kSyn = 0x02, kReset = 0x04, kAck = 0x10;
constexpr uint32_t kTcpHeader = 20, kWord = 4;

struct Segment {
    bool valid = false;
    uint32_t acknowledged = 0;
    uint8_t flags = 0;
    bool hasPayload = false;
    uint16_t source = 0, destination = 0;  // ports
};

Segment ReadSegment(const ns3::Packet& packet, uint32_t linkHeader) {
    uint8_t head[kLongestHead];
    const uint32_t size = packet.CopyData(head, sizeof head);
    const Transport found = FindTransport(head + linkHeader, size - linkHeader);
    const uint32_t at = linkHeader + found.offset;
    if (found.protocol != kTcp || at + kTcpHeader > size) {
        return {};
    }
    const uint8_t* header = head + at;
    const uint32_t number = uint32_t{header[8]} << 24 | header[9] << 16 | header[10] << 8 | header[11];
    const auto port = [header](int first) { return static_cast<uint16_t>(header[first] << 8 | header[first + 1]); };
    return {true, number, header[13], packet.GetSize() > at + (header[12] >> 4) * kWord, port(0), port(2)};
}

}  // namespace

void CrossFlow::Returned(const ns3::Packet& packet, uint32_t linkHeader, int64_t now) {
    const Segment segment = ReadSegment(packet, linkHeader);
    if (!segment.valid || !(segment.flags & kAck) || segment.flags & kReset) {
        return;
    }
    if (segment.flags & kSyn) {
        if (m_acknowledged == 0) {
            m_highest = segment.acknowledged;
            m_port = segment.destination;
        }
        return;
    }
    const auto progress = static_cast<int32_t>(segment.acknowledged - m_highest);
    if (m_port == 0 || segment.destination != m_port || progress <= 0) {
        return;
    }
    if (m_acknowledged == 0) {
        m_begin = now;
        m_simulatedBegin = ns3::Simulator::Now().GetNanoSeconds();
        m_first = static_cast<uint64_t>(progress);
    }
    m_end = now;
    m_highest = segment.acknowledged;
    m_acknowledged += static_cast<uint64_t>(progress);
    m_perSecond.resize(static_cast<size_t>((now - m_begin) / kSecond) + 1);
    m_perSecond.back() += static_cast<uint64_t>(progress);
}

void CrossFlow::Delivered(const ns3::Packet& packet, uint32_t linkHeader) {
    const Segment segment = ReadSegment(packet, linkHeader);
    m_delivered += segment.hasPayload && segment.source == m_port;
}

void CrossFlow::Write(std::ostream& out) const {
    const auto nanoseconds = static_cast<double>(ns3::Simulator::Now().GetNanoSeconds() - m_simulatedBegin);
    const auto later = static_cast<double>(m_acknowledged - m_first);
    const double goodput = later > 0 && nanoseconds > 0 ? later * 8 * kSecond / nanoseconds : 0;
    out << "{\"begin\":" << static_cast<double>(m_begin) / kSecond
        << ",\"end\":" << static_cast<double>(m_end) / kSecond << ",\"acknowledged\":" << m_acknowledged
        << ",\"first\":" << m_first << ",\"goodput\":" << goodput << ",\"per_second\":[";
    for (size_t second = 0; second < m_perSecond.size(); ++second) {
        out << (second ? "," : "") << m_perSecond[second];
    }
    out << "],\"delivered\":" << m_delivered << ",\"queue_drops\":" << m_queueDrops << "}";
}

}  // namespace quicsat

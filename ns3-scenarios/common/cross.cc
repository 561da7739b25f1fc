#include "cross.h"

#include "packet.h"

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
    return {true, number, header[13], packet.GetSize() > at + (header[12] >> 4) * kWord};
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
            m_open = true;
        }
        return;
    }
    const auto progress = static_cast<int32_t>(segment.acknowledged - m_highest);
    if (!m_open || progress <= 0) {
        return;
    }
    m_begin = m_acknowledged ? m_begin : now;
    m_end = now;
    m_highest = segment.acknowledged;
    m_acknowledged += static_cast<uint64_t>(progress);
    m_perSecond.resize(static_cast<size_t>((now - m_begin) / kSecond) + 1);
    m_perSecond.back() += static_cast<uint64_t>(progress);
}

void CrossFlow::Delivered(const ns3::Packet& packet, uint32_t linkHeader) {
    m_delivered += ReadSegment(packet, linkHeader).hasPayload;
}

void CrossFlow::Write(std::ostream& out) const {
    const auto nanoseconds = static_cast<double>(m_end - m_begin);
    const double goodput = nanoseconds > 0 ? static_cast<double>(m_acknowledged) * 8 * kSecond / nanoseconds : 0;
    out << "{\"begin\":" << static_cast<double>(m_begin) / kSecond << ",\"end\":" << static_cast<double>(m_end) / kSecond
        << ",\"acknowledged\":" << m_acknowledged << ",\"goodput\":" << goodput << ",\"per_second\":[";
    for (size_t second = 0; second < m_perSecond.size(); ++second) {
        out << (second ? "," : "") << m_perSecond[second];
    }
    out << "],\"delivered\":" << m_delivered << ",\"queue_drops\":" << m_queueDrops << "}";
}

}  // namespace quicsat

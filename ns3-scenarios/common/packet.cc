#include "packet.h"

#include "ns3/hash.h"

#include <algorithm>
#include <arpa/inet.h>

namespace quicsat {

namespace {

constexpr uint32_t kIpv4Header = 20, kIpv6Header = 40, kExtensionUnit = 8, kWord = 4;
constexpr uint32_t kUdpHeader = 8, kTcpHeader = 20;
constexpr uint32_t kUdpChecksum = 6, kTcpChecksum = 16, kIpv4Checksum = 10;
constexpr uint32_t kIpv4Source = 12, kIpv6Source = 8, kIpv4Address = 4, kIpv6Address = 16;
constexpr uint32_t kLongestHead = 256;  // bytes in which extension headers are looked for
constexpr uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kDestination = 60;

constexpr uint8_t kEcn = 0x03, kCongestion = 0x03;

uint16_t Big(const uint8_t* bytes) {
    return static_cast<uint16_t>(bytes[0] << 8 | bytes[1]);
}

// A checksum after a word of what it covers has changed (RFC 1624, equation 3).
uint16_t AdjustedSum(uint16_t checksum, uint16_t before, uint16_t after) {
    uint32_t sum = static_cast<uint16_t>(~checksum) + static_cast<uint16_t>(~before) + uint32_t{after};
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(~sum);
}

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

Transport FindInIpv6(const uint8_t* bytes, uint32_t size) {
    Transport found = {bytes[6], kIpv6Header};
    while (found.protocol != kUdp && found.protocol != kTcp) {
        if (found.offset + kExtensionUnit > size) {
            return {};
        }
        const uint8_t* extension = bytes + found.offset;
        const uint32_t length = ExtensionSize(found.protocol, extension);
        if (length == 0) {
            return {};
        }
        // neither an offset nor more fragments: a fragment header of a packet that is whole (RFC 6946)
        found.whole = found.whole && (found.protocol != kFragment || (Big(extension + 2) & 0xfff9) == 0);
        found.protocol = extension[0];
        found.offset += length;
    }
    return found;
}

}  // namespace

Transport FindTransport(const uint8_t* bytes, uint32_t size) {
    if (size >= kIpv4Header && bytes[0] >> 4 == 4) {
        const bool whole = (Big(bytes + 6) & 0x3fff) == 0;  // neither an offset nor more fragments
        return {bytes[9], (bytes[0] & 0x0fU) * kWord, whole};
    }
    if (size >= kIpv6Header && bytes[0] >> 4 == 6) {
        return FindInIpv6(bytes, size);
    }
    return {};
}

Kind Subject::Of(const ns3::Packet& packet, uint32_t linkHeader) const {
    uint8_t head[kLongestHead];
    const uint32_t size = packet.CopyData(head, sizeof head);
    if (size <= linkHeader) {
        return Kind::Other;
    }
    const uint8_t* bytes = head + linkHeader;
    const Transport found = FindTransport(bytes, size - linkHeader);
    if (crossPort && found.protocol == kTcp && found.whole && found.offset + kWord <= size - linkHeader &&
        (Big(bytes + found.offset) == crossPort || Big(bytes + found.offset + 2) == crossPort)) {
        return Kind::Cross;
    }
    const bool subject = (udp && found.protocol == kUdp) || (tcp && found.protocol == kTcp);
    return subject ? Kind::Subject : Kind::Other;
}

MarkResult MarkCongestion(ns3::Packet& packet, uint32_t linkHeader) {
    std::vector<uint8_t> bytes(packet.GetSize());
    packet.CopyData(bytes.data(), static_cast<uint32_t>(bytes.size()));
    if (bytes.size() < linkHeader + kIpv4Header) {
        return MarkResult::Refused;
    }
    uint8_t* const header = &bytes[linkHeader];
    const bool ipv4 = header[0] >> 4 == 4;
    if (!ipv4 && header[0] >> 4 != 6) {
        return MarkResult::Refused;
    }
    uint8_t& field = header[1];  // IPv6's traffic class is four bits further to the left
    const int shift = ipv4 ? 0 : 4;
    const uint8_t before = field >> shift & kEcn;
    if (before == 0 || before == kCongestion) {
        return before ? MarkResult::Already : MarkResult::Refused;
    }
    const uint16_t word = Big(header);
    field |= static_cast<uint8_t>(kCongestion << shift);
    if (ipv4) {
        const uint16_t sum = AdjustedSum(Big(header + kIpv4Checksum), word, Big(header));
        header[kIpv4Checksum] = static_cast<uint8_t>(sum >> 8);
        header[kIpv4Checksum + 1] = static_cast<uint8_t>(sum);
    }
    packet = ns3::Packet(bytes.data(), static_cast<uint32_t>(bytes.size()));
    return MarkResult::Marked;
}

uint32_t FlowHash(const ns3::Packet& packet, uint32_t linkHeader, uint32_t perturbation) {
    uint8_t head[kLongestHead];
    const uint32_t size = packet.CopyData(head, sizeof head);
    const uint8_t* const bytes = head + linkHeader;
    std::string key(reinterpret_cast<const char*>(&perturbation), sizeof perturbation);
    const auto add = [&](uint32_t from, uint32_t length) {
        if (linkHeader + from + length <= size) {
            key.append(reinterpret_cast<const char*>(bytes + from), length);
        }
    };
    const bool ipv4 = size > linkHeader && bytes[0] >> 4 == 4;
    add(ipv4 ? kIpv4Source : kIpv6Source, ipv4 ? 2 * kIpv4Address : 2 * kIpv6Address);
    const Transport found = size > linkHeader ? FindTransport(bytes, size - linkHeader) : Transport();
    key.push_back(static_cast<char>(found.protocol));
    if (found.whole && (found.protocol == kUdp || found.protocol == kTcp)) {
        add(found.offset, 2 * sizeof(uint16_t));
    }
    return ns3::Hash32(key);
}

std::string Endpoint::Text() const {
    char text[INET6_ADDRSTRLEN];
    inet_ntop(length == 4 ? AF_INET : AF_INET6, address.data(), text, sizeof text);
    const std::string host = length == 4 ? text : "[" + std::string(text) + "]";
    return host + ":" + std::to_string(port);
}

Editor::Editor(const ns3::Packet& packet, uint32_t linkHeader) : m_link(linkHeader), m_bytes(packet.GetSize()) {
    packet.CopyData(m_bytes.data(), static_cast<uint32_t>(m_bytes.size()));
    if (m_bytes.size() <= m_link) {
        return;
    }
    const auto size = static_cast<uint32_t>(m_bytes.size()) - m_link;
    m_transport = FindTransport(&m_bytes[m_link], size);
    m_ipv4 = m_bytes[m_link] >> 4 == 4;
    const bool known = m_transport.protocol == kUdp || m_transport.protocol == kTcp;
    m_usable = known && m_transport.whole &&
               m_transport.offset + (m_transport.protocol == kUdp ? kUdpHeader : kTcpHeader) <= size &&
               PayloadAt() <= m_bytes.size();
}

uint32_t Editor::AddressAt(uint32_t which) const {
    return m_link + (m_ipv4 ? 12 + 4 * which : 8 + 16 * which);
}

uint32_t Editor::PayloadAt() const {
    const uint32_t header = m_link + m_transport.offset;
    return header + (m_transport.protocol == kUdp ? kUdpHeader : (m_bytes[header + 12] >> 4) * kWord);
}

Endpoint Editor::Read(uint32_t which) const {
    Endpoint endpoint;
    endpoint.length = m_ipv4 ? 4 : 16;
    std::copy_n(&m_bytes[AddressAt(which)], endpoint.length, endpoint.address.begin());
    endpoint.port = Big(&m_bytes[m_link + m_transport.offset + 2 * which]);
    return endpoint;
}

void Editor::Write(uint32_t which, const Endpoint& endpoint) {
    const uint8_t port[2] = {static_cast<uint8_t>(endpoint.port >> 8), static_cast<uint8_t>(endpoint.port)};
    Change(AddressAt(which), {endpoint.address.data(), endpoint.length}, true, true);
    Change(m_link + m_transport.offset + 2 * which, port, false, true);
}

std::span<const uint8_t> Editor::Payload() const {
    return {m_bytes.begin() + PayloadAt(), m_bytes.end()};
}

void Editor::SetPayload(uint32_t index, uint8_t value, bool fixChecksum) {
    Change(PayloadAt() + index, {&value, 1}, false, fixChecksum);
}

void Editor::PutBack(ns3::Packet& packet) const {
    packet = ns3::Packet(m_bytes.data(), static_cast<uint32_t>(m_bytes.size()));
}

// The 16 bits at `position`, as checksums see them: an odd last byte is followed by a zero.
uint16_t Editor::Word(uint32_t position) const {
    const uint8_t low = position + 1 < m_bytes.size() ? m_bytes[position + 1] : 0;
    return static_cast<uint16_t>(m_bytes[position] << 8 | low);
}

// Puts `bytes` at `position`; all that is summed up begins an even number of bytes behind the link's header.
void Editor::Change(uint32_t position, std::span<const uint8_t> bytes, bool inHeader, bool fixChecksum) {
    const uint32_t checksum =
        m_link + m_transport.offset + (m_transport.protocol == kUdp ? kUdpChecksum : kTcpChecksum);
    const bool none = m_transport.protocol == kUdp && Word(checksum) == 0;  // IPv4 may do without
    const auto size = static_cast<uint32_t>(bytes.size());
    for (uint32_t word = m_link + ((position - m_link) & ~1U); word < position + size; word += 2) {
        const uint16_t before = Word(word);
        for (uint32_t byte = std::max(word, position); byte < std::min(word + 2, position + size); ++byte) {
            m_bytes[byte] = bytes[byte - position];
        }
        if (inHeader && m_ipv4) {
            Adjust(m_link + kIpv4Checksum, before, Word(word));
        }
        if (fixChecksum && !none) {
            Adjust(checksum, before, Word(word));
        }
    }
    if (!none && m_transport.protocol == kUdp && Word(checksum) == 0) {
        m_bytes[checksum] = m_bytes[checksum + 1] = 0xff;  // RFC 768: 0 would mean that there is none
    }
}

void Editor::Adjust(uint32_t position, uint16_t before, uint16_t after) {
    const uint16_t sum = AdjustedSum(Word(position), before, after);
    m_bytes[position] = static_cast<uint8_t>(sum >> 8);
    m_bytes[position + 1] = static_cast<uint8_t>(sum);
}

}  // namespace quicsat

// What is in a packet, and how to change it so that its checksums still fit.
#pragma once

#include "ns3/packet.h"

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace quicsat {

constexpr uint8_t kTcp = 6, kUdp = 17;
constexpr uint32_t kEthernetHeader = 14, kPppHeader = 2;

// Where an IP packet's transport header is.
struct Transport {
    uint8_t protocol = 0;  // 0 if none was found
    uint32_t offset = 0;   // from the first byte of the IP packet
    bool whole = true;     // no fragment of a packet
};

// Looks behind IPv6 extension headers, too.
Transport FindTransport(const uint8_t* bytes, uint32_t size);

enum class Kind { Other, Subject, Cross };

// Tells the packets of the transfer, which losses and counters are about, from those of a competing flow and others.
struct Subject {
    bool udp = true, tcp = false;
    uint16_t crossPort = 0;  // TCP port of the competing flow; 0 if there is none

    // `linkHeader`: bytes in front of the IP packet. Each fragment counts.
    Kind Of(const ns3::Packet& packet, uint32_t linkHeader) const;
};

// What became of the wish to mark a packet (RFC 3168, section 5).
enum class MarkResult { Refused, Marked, Already };

// Gives an IP packet the codepoint CE (congestion experienced) if its sender supports that.
MarkResult MarkCongestion(ns3::Packet& packet, uint32_t linkHeader);

// A number that packets with the same addresses, protocol and ports have in common.
uint32_t FlowHash(const ns3::Packet& packet, uint32_t linkHeader, uint32_t perturbation);

// An IP address with a port.
struct Endpoint {
    std::array<uint8_t, 16> address = {};
    uint8_t length = 0;  // bytes of the address that count
    uint16_t port = 0;
    auto operator<=>(const Endpoint&) const = default;
    std::string Text() const;  // "193.167.0.100:4433", "[fd00:cafe:cafe::100]:4433"
};

// A copy of a UDP or TCP packet's bytes that can be changed and put back.
class Editor {
  public:
    Editor(const ns3::Packet& packet, uint32_t linkHeader);

    // Whether it is a packet that can be changed: whole, UDP or TCP.
    bool Usable() const { return m_usable; }
    uint8_t Protocol() const { return m_transport.protocol; }
    Endpoint Source() const { return Read(0); }
    Endpoint Destination() const { return Read(1); }
    void SetSource(const Endpoint& endpoint) { Write(0, endpoint); }
    void SetDestination(const Endpoint& endpoint) { Write(1, endpoint); }
    std::span<const uint8_t> Payload() const;
    void SetPayload(uint32_t index, uint8_t value, bool fixChecksum);
    void PutBack(ns3::Packet& packet) const;

  private:
    Endpoint Read(uint32_t which) const;
    void Write(uint32_t which, const Endpoint& endpoint);
    uint32_t AddressAt(uint32_t which) const;
    uint32_t PayloadAt() const;
    uint16_t Word(uint32_t position) const;
    void Change(uint32_t position, std::span<const uint8_t> bytes, bool inHeader, bool fixChecksum);
    void Adjust(uint32_t position, uint16_t before, uint16_t after);

    uint32_t m_link;
    std::vector<uint8_t> m_bytes;  // with the link's header
    Transport m_transport;
    bool m_ipv4 = false;
    bool m_usable = false;
};

}  // namespace quicsat

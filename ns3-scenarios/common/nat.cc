#include "nat.h"

namespace quicsat {

namespace {
constexpr size_t kMostFlows = 4096;
constexpr size_t kMostTold = 100;
constexpr uint16_t kFirstPort = 49152;  // of those for such purposes (RFC 6335, section 6)
constexpr uint16_t kPorts = 16384;
// Last bytes of addresses: below are those of router and simulator, 90 and 100 those of endpoints.
constexpr uint8_t kFirstHost = 4, kLastHost = 254;
constexpr uint8_t kIpv6Hosts = 0x10;  // the byte before it in IPv6, where hosts are ::10xx
const std::set<uint8_t> kTaken = {90, 100};
}  // namespace

Nat::Nat(bool addresses, uint32_t seed) : m_addresses(addresses) {
    std::seed_seq sequence = {seed, 5U};
    m_random.seed(sequence);
}

Endpoint Nat::Outside(const Endpoint& inside, bool newPort) {
    Endpoint outside = inside;
    if (m_host) {
        outside.address[outside.length - 1U] = m_host;
        if (outside.length == 16) {
            outside.address[14] = kIpv6Hosts;
        }
    }
    while (newPort || m_inside.contains(outside)) {
        outside.port = static_cast<uint16_t>(kFirstPort + m_random() % kPorts);
        newPort = outside.port == inside.port;
    }
    return outside;
}

bool Nat::Leave(ns3::Packet& packet) {
    Editor editor(packet, kPppHeader);
    if (!editor.Usable()) {
        return true;
    }
    const Endpoint inside = editor.Source();
    auto known = m_outside.find(inside);
    if (known == m_outside.end()) {
        if (m_outside.size() == kMostFlows) {
            return false;
        }
        known = m_outside.emplace(inside, Outside(inside, false)).first;
        m_inside[known->second] = inside;
    }
    if (known->second != inside) {
        editor.SetSource(known->second);
        editor.PutBack(packet);
    }
    return true;
}

bool Nat::Enter(ns3::Packet& packet) {
    Editor editor(packet, kPppHeader);
    if (!editor.Usable()) {
        return true;
    }
    const auto known = m_inside.find(editor.Destination());
    if (known == m_inside.end()) {
        return false;
    }
    if (known->second != known->first) {
        editor.SetDestination(known->second);
        editor.PutBack(packet);
    }
    return true;
}

Nat::Mappings Nat::Rebind() {
    if (m_addresses) {
        uint8_t host = m_host;
        while (host == m_host || kTaken.contains(host)) {
            host = static_cast<uint8_t>(kFirstHost + m_random() % (kLastHost - kFirstHost + 1));
        }
        m_host = host;
    }
    const std::map<Endpoint, Endpoint> before = std::exchange(m_inside, {});
    Mappings told;
    for (auto& [inside, outside] : m_outside) {
        Endpoint fresh = Outside(inside, true);
        while (before.contains(fresh)) {
            fresh = Outside(inside, true);
        }
        outside = fresh;
        m_inside[outside] = inside;
        if (told.size() < kMostTold) {
            told.emplace_back(inside.Text(), outside.Text());
        }
    }
    return told;
}

}  // namespace quicsat

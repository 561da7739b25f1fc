// A NAT in front of the client: at first it changes nothing, and with each rebinding all that it knows.
#pragma once

#include "packet.h"

#include "ns3/packet.h"

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace quicsat {

class Nat {
  public:
    using Mappings = std::vector<std::pair<std::string, std::string>>;  // inside, outside

    Nat(bool addresses, uint32_t seed);

    // A packet from the client; false if there is no room for its flow.
    bool Leave(ns3::Packet& packet);
    // A packet to the client; false if nobody knows to whom. Fragments pass both ways as they are.
    bool Enter(ns3::Packet& packet);
    // New ports for all flows, and a new address if so configured; those that were valid so far are no more.
    // Returns the first hundred mappings.
    Mappings Rebind();

  private:
    Endpoint Outside(const Endpoint& inside, bool newPort);

    bool m_addresses;
    uint8_t m_host = 0;                      // last byte of the address outside; 0 as long as it is that of the inside
    std::map<Endpoint, Endpoint> m_outside;  // by what is inside
    std::map<Endpoint, Endpoint> m_inside;   // by what is outside
    std::mt19937_64 m_random;
};

}  // namespace quicsat

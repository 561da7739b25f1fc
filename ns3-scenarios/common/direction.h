// One direction of the link: how it is configured, and what was counted in it.
#pragma once

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

#include <cstdint>
#include <optional>
#include <set>

namespace quicsat {

// Loss of the transfer's packets; all shares 0..1.
struct Loss {
    double rate = 0;       // independent loss
    double goodToBad = 0;  // Gilbert-Elliott: every packet that arrives in the bad state is lost
    double badToGood = 1;
    uint32_t longestBurst = 0;  // packets lost in a row, then one passes; 0: no limit
    bool IsBursty() const { return goodToBad > 0; }
};

// Independent corruption of the transfer's packets.
struct Corruption {
    double rate = 0;
    uint32_t longestBurst = 0;
    bool lose = false;  // those that are hit are lost
};

struct Direction {
    std::optional<ns3::Time> delay = {};
    ns3::DataRate rate = {};  // 0 until it is given
    uint32_t queue = 0;       // packets that may wait while another one is on its way out; 0 until it is given
    Loss loss = {};
    Corruption corruption = {};
    std::set<uint64_t> drops = {};  // packets of the transfer, counted from 1 where they arrive
};

// Packets of the transfer.
struct Counters {
    uint64_t received = 0;   // from the sender
    uint64_t delivered = 0;  // to the receiver
    uint64_t queueDrops = 0;
    uint64_t lossDrops = 0;
    uint64_t corrupted = 0;
    uint64_t listedDrops = 0;
    uint64_t blackholeDrops = 0;
    uint64_t natDrops = 0;
    // Negative if packets were delivered that were never received whole, e.g. because an endpoint does not cut them.
    int64_t InFlight() const {
        return static_cast<int64_t>(received - delivered - queueDrops - lossDrops - listedDrops - blackholeDrops -
                                    natDrops);
    }
};

}  // namespace quicsat

// One direction of the link: how it is configured, and what was counted in it.
#pragma once

#include "demand.h"
#include "profile.h"
#include "udp_cross.h"

#include "ns3/data-rate.h"
#include "ns3/nstime.h"
#include "ns3/queue-size.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace quicsat {

// Loss of the transfer's packets; all shares 0..1.
struct Loss {
    double rate = 0;       // independent loss
    double goodToBad = 0;  // Gilbert-Elliott: each packet may change the state, and meets the loss of the new one
    double badToGood = 1;
    double lossInGood = 0;
    double lossInBad = 1;
    uint32_t longestBurst = 0;  // packets lost in a row, then one passes; 0: no limit
    bool IsBursty() const { return goodToBad > 0; }
};

// Independent corruption of the transfer's packets.
struct Corruption {
    double rate = 0;
    uint32_t longestBurst = 0;
    bool lose = false;  // those that are hit are lost
};

// Delay of each packet of the transfer in addition to the link's.
struct Jitter {
    ns3::Time size = {};            // its most, standard deviation or mean, by `shape`; 0: no jitter
    std::string shape = "uniform";  // or "normal", "exponential"
    bool overtake = false;          // else a packet waits for those before it
};

// Packets of the transfer that are held back while later ones pass.
struct Reordering {
    double rate = 0;
    ns3::Time delay = {};  // for how long, at most
    uint32_t gap = 0;      // until so many later ones have arrived; 0: for the whole delay
};

// A queue with a discipline of ns-3.
struct Discipline {
    std::string name = {};      // "drop-tail", "codel", "fq-codel", "pie" or "red"; empty: the plain queue
    ns3::QueueSize limit = {};  // 0 until it is given
    ns3::Time target = {};      // 0: the discipline's own default
    ns3::Time interval = {};    // the same
    bool ecn = false;           // marks packets that can be marked instead of dropping them
    ns3::Time markAbove = {};   // marks every packet that waited longer and can be marked; 0: never
    double redMinimum = 0;      // average length from which RED drops, in the limit's unit; 0 until it is given
    double redMaximum = 0;      // and from which it drops with `redProbability`
    double redProbability = 0.1;
    double redWeight = 0.002;  // of the newest length in the average
};

struct Direction {
    std::optional<ns3::Time> delay = {};
    ns3::DataRate rate = {};  // 0 until it is given
    uint32_t queue = 0;       // packets that may wait while another one is on its way out; 0 until it is given
    Discipline discipline = {};
    Loss loss = {};
    Corruption corruption = {};
    Jitter jitter = {};
    Reordering reordering = {};
    double duplication = 0;
    std::set<uint64_t> drops = {};  // packets of the transfer, counted from 1 where they arrive
    Profile profile = {};
    Demand demand = {};  // of the way from client to server
    UdpCross udpCross = {};
};

// What changes while the link works.
struct Conditions {
    bool dark = false;  // nothing arrives
    double loss = 0;    // by the profile, beside the link's own
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
    uint64_t ecnMarks = 0;           // packets that left the queue with a mark of it
    uint64_t duplicated = 0;         // copies; they are delivered, too
    uint64_t reordered = 0;          // packets that were held back
    uint64_t outOfOrder = 0;         // packets that arrived behind a later one
    uint64_t udpCrossDelivered = 0;  // packets of others, which no other counter has
    uint64_t jittered = 0;           // packets with a delay of their own
    double jitterSum = 0;            // of these delays, seconds
    double jitterMost = 0;
    // Negative if packets were delivered that were never received whole, e.g. because an endpoint does not cut them.
    int64_t InFlight() const {
        return static_cast<int64_t>(received + duplicated - delivered - queueDrops - lossDrops - listedDrops -
                                    blackholeDrops - natDrops);
    }
};

}  // namespace quicsat

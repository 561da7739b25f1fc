// The queue in front of the link: a plain one, or one of ns-3's queue disciplines for whole packets.
#pragma once

#include "direction.h"

#include "ns3/packet.h"
#include "ns3/queue-disc.h"
#include "ns3/queue.h"

#include <cstdint>
#include <functional>

namespace quicsat {

// A queue of packets with their link header whose discipline decides what is dropped, marked and sent next.
class ManagedQueue : public ns3::Queue<ns3::Packet> {
  public:
    using Watcher = std::function<void(const ns3::Packet& packet)>;

    static ns3::TypeId GetTypeId();
    // `rate`: of the link. `stream`: of the random numbers, another one for each direction. `linkHeader`: bytes in front of
    // the IP packet, of which the last two count.
    void Configure(const Discipline& discipline, ns3::DataRate rate, int64_t stream, uint32_t linkHeader);
    // Every packet that leaves the queue with a mark that it got in it.
    void WhenMarked(Watcher watcher) { m_marked = std::move(watcher); }
    // Bytes that wait; the base class counts none.
    uint32_t Backlog() const { return m_discipline->GetNBytes(); }

    bool Enqueue(ns3::Ptr<ns3::Packet> packet) override;
    ns3::Ptr<ns3::Packet> Dequeue() override;  // nullptr if the discipline has nothing to send
    ns3::Ptr<ns3::Packet> Remove() override { return Dequeue(); }
    ns3::Ptr<const ns3::Packet> Peek() const override;

  private:
    ns3::Ptr<ns3::QueueDisc> m_discipline;
    uint32_t m_linkHeader = 0;
    ns3::Time m_markAbove;
    Watcher m_marked;
};

// The queue in front of a direction, of packets that begin with `linkHeader` bytes in front of the IP packet. `extra`:
// packets that a plain one holds beyond its configured number; `stream`: as for ManagedQueue; `marked`: as for WhenMarked.
ns3::Ptr<ns3::Queue<ns3::Packet>> MakeQueue(const Direction& direction, uint32_t linkHeader, uint32_t extra,
                                            int64_t stream, ManagedQueue::Watcher marked);

}  // namespace quicsat

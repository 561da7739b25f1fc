// A network device of ns-3 that sends and receives whole Ethernet frames at a packet socket.
#pragma once

#include "socket.h"

#include "ns3/error-model.h"
#include "ns3/queue.h"
#include "ns3/simple-net-device.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace quicsat {

class FrameDevice : public ns3::SimpleNetDevice {
  public:
    using Watcher = std::function<void(const ns3::Packet& frame)>;

    FrameDevice(int socket, const Interface& interface);

    // Every frame that passes, in either direction.
    void WhenSeen(Watcher watcher) { m_seen.push_back(std::move(watcher)); }
    // Frames that were addressed to us, and those that were sent.
    void WhenReceived(Watcher watcher) { m_received.push_back(std::move(watcher)); }
    void WhenSent(Watcher watcher) { m_sent.push_back(std::move(watcher)); }

    bool SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address& source, const ns3::Address& destination,
                  uint16_t protocol) override;

  private:
    void Read();
    void Arrive(ns3::Ptr<ns3::Packet> frame);

    int m_socket;
    size_t m_waiting = 0;  // frames that were read and have not arrived
    int64_t m_latest = 0;  // when the last frame arrived, in nanoseconds of simulated time
    std::vector<Watcher> m_seen, m_received, m_sent;
};

}  // namespace quicsat

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
    // `sent`: when the frame was handed to the kernel, in nanoseconds since the start of the simulation.
    using DepartureWatcher = std::function<void(const ns3::Packet& frame, int64_t sent)>;

    FrameDevice(int socket, const Interface& interface);

    // Every frame that comes, at the simulated time at which the kernel got it; and every frame that goes.
    void WhenSeen(Watcher watcher) { m_seen.push_back(std::move(watcher)); }
    void WhenDeparted(DepartureWatcher watcher) { m_departed.push_back(std::move(watcher)); }
    // Frames that were addressed to us, and those that are about to be sent.
    void WhenReceived(Watcher watcher) { m_received.push_back(std::move(watcher)); }
    void WhenSent(Watcher watcher) { m_sent.push_back(std::move(watcher)); }

    bool SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address& source, const ns3::Address& destination,
                  uint16_t protocol) override;
    // Sends a whole frame as it is; false if the interface did not take it.
    bool SendFrame(const ns3::Packet& frame);

  private:
    void Read();
    void Arrive(ns3::Ptr<ns3::Packet> frame);

    int m_socket;
    size_t m_waiting = 0;  // frames that were read and have not arrived
    int64_t m_latest = 0;  // when the last frame arrived, in nanoseconds of simulated time
    std::vector<Watcher> m_seen, m_received, m_sent;
    std::vector<DepartureWatcher> m_departed;
};

}  // namespace quicsat

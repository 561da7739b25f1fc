#include "frames.h"

#include "clock.h"

#include "ns3/ethernet-header.h"
#include "ns3/mac48-address.h"
#include "ns3/node.h"
#include "ns3/simple-channel.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <array>

using namespace ns3;

namespace quicsat {

namespace {

constexpr uint16_t kMtu = 1500;
constexpr size_t kBatch = 32;
// frames; more than these stay with the kernel, which drops and counts what is too much
constexpr size_t kMostWaiting = 100'000;
constexpr uint16_t kSmallestType = 0x600;  // below it stands a length (IEEE 802.3, clause 3.2.6)

void Call(const std::vector<FrameDevice::Watcher>& watchers, const Packet& frame) {
    for (const auto& watcher : watchers) {
        watcher(frame);
    }
}

}  // namespace

FrameDevice::FrameDevice(int socket, const Interface& interface) : m_socket(socket) {
    Mac48Address mac;
    mac.CopyFrom(interface.mac);
    SetAddress(mac);
    SetMtu(kMtu);
    SetChannel(CreateObject<SimpleChannel>());  // a device without one is down
    WhenReadable(socket, [this] { Read(); });
}

// A frame arrives when the kernel got it, however late we read it, but not before the one in front of it, and not in the
// past of the simulation.
void FrameDevice::Read() {
    static std::array<Frame, kBatch> frames;
    if (m_waiting >= kMostWaiting) {
        return;
    }
    const size_t count = ReadFrames(m_socket, frames);
    const int64_t now = RealTime(), reached = Simulator::Now().GetNanoSeconds();
    m_waiting += count;
    for (size_t index = 0; index < count; ++index) {
        m_latest = std::max({m_latest, reached, std::min(now, RealTime(frames[index].arrival))});
        Simulator::ScheduleWithContext(GetNode()->GetId(), NanoSeconds(m_latest - reached), &FrameDevice::Arrive, this,
                                       Create<Packet>(frames[index].bytes.data(), frames[index].size));
    }
}

void FrameDevice::Arrive(Ptr<Packet> frame) {
    --m_waiting;
    Call(m_seen, *frame);
    EthernetHeader header(false);
    const uint32_t size = frame->GetSize(), smallest = header.GetSerializedSize();
    if (size < smallest || size > smallest + GetMtu()) {
        return;
    }
    const auto whole = frame->Copy();
    frame->RemoveHeader(header);
    const Mac48Address destination = header.GetDestination(), own = Mac48Address::ConvertFrom(GetAddress());
    if (header.GetLengthType() < kSmallestType || !(destination == own || destination.IsGroup())) {
        return;
    }
    Call(m_received, *whole);
    Receive(frame, header.GetLengthType(), destination, header.GetSource());
}

bool FrameDevice::SendFrom(Ptr<Packet> packet, const Address& source, const Address& destination, uint16_t protocol) {
    EthernetHeader header(false);
    header.SetSource(Mac48Address::ConvertFrom(source));
    header.SetDestination(Mac48Address::ConvertFrom(destination));
    header.SetLengthType(protocol);
    packet->AddHeader(header);
    return SendFrame(*packet);
}

bool FrameDevice::SendFrame(const Packet& frame) {
    Call(m_sent, frame);
    std::array<uint8_t, Frame::kMost> bytes;
    const uint32_t size = frame.CopyData(bytes.data(), bytes.size());
    // read before the call: the receiver may answer before it returns, and a process that is stopped is stopped after it
    const int64_t sent = RealTime();
    const bool taken = WriteFrame(m_socket, bytes.data(), size);
    for (const auto& watcher : m_departed) {
        watcher(frame, sent);
    }
    return taken;
}

}  // namespace quicsat

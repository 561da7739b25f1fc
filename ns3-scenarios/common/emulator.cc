#include "emulator.h"

#include "clock.h"
#include "cross.h"
#include "frames.h"
#include "impairment.h"
#include "lateness.h"
#include "nat.h"
#include "socket.h"
#include "trace.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iomanip>
#include <memory>
#include <utility>
#include <vector>

using namespace ns3;

namespace quicsat {

namespace {

constexpr uint16_t kStartSignalPort = 57832;  // fixed by the QUIC Interop Runner
constexpr double kNanoseconds = 1e9;
constexpr uint64_t kTicksPerSecond = 100;
constexpr Reservation kForwarding = {0.25, 100'000'000};  // for kReservedRate, with which bursts pass whole
constexpr double kReservedRate = 20e6, kMostReserved = 3.5;
constexpr double kPatience = 10;  // seconds for the server, as in the QUIC Interop Runner

volatile std::sig_atomic_t g_stop = 0;

// One side of the link: the simulator's address towards an endpoint, and the endpoint's own.
struct Side {
    const char* trace;
    const char* ipv4;
    const char* ipv6;
    const char* node4;  // ns-3's own addresses, other than the kernel's, so that only the kernel answers for those
    const char* node6;
    const char* network4;  // /24
    const char* network6;  // /64
};
constexpr Side kLeft = {"/logs/trace_node_left.pcap", "193.167.0.2", "fd00:cafe:cafe:0::2", "193.167.0.3",
                        "fd00:cafe:cafe:0::3",        "193.167.0.0", "fd00:cafe:cafe:0::"};
constexpr Side kRight = {"/logs/trace_node_right.pcap", "193.167.100.2", "fd00:cafe:cafe:100::2", "193.167.100.3",
                         "fd00:cafe:cafe:100::3",       "193.167.100.0", "fd00:cafe:cafe:100::"};

double InSeconds(int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / kNanoseconds;
}

void Say(const std::string& event) {
    std::printf("{\"event\":\"%s\"}\n", event.c_str());
    std::fflush(stdout);
}

class Emulator {
  public:
    explicit Emulator(const Link& link)
        : m_link(link), m_lateness(LateBound((*link.forward.delay + *link.back.delay).GetNanoSeconds())) {}
    int Run();

  private:
    struct End {
        Ptr<Node> node;
        Ptr<FrameDevice> device;
        std::shared_ptr<Trace> trace;
        int socket;
    };

    End MakeEnd(const Side& side);
    void Join(End& left, End& right);
    void AddAddresses(const End& end, const Side& side, const Side& other, Ptr<NetDevice> link, const char* link4,
                      const char* link6, const char* peer4, const char* peer6);
    Ptr<PointToPointNetDevice> MakeDevice(Ptr<Node> node, const Direction& out, Counters& leaving, const Direction& in,
                                          Counters& arriving, uint32_t stream);
    void Watch(End& end, Counters& received, Counters& delivered);
    void WatchClient(End& end);
    void Start(const End& left, const End& right);
    int64_t WallTime() const { return m_started + Simulator::Now().GetNanoSeconds(); }
    void StartTimers();
    void GoDark();
    void GoLight();
    void Rebind();
    void Tick();
    void WriteReport(const End& left, const End& right, int64_t stopped) const;

    Link m_link;
    Counters m_forward, m_back;
    int64_t m_started = 0;  // wall clock at simulation time 0, nanoseconds since 1970
    Lateness m_lateness;
    double m_lagSum = 0, m_lagMax = 0;
    std::vector<double> m_lagPerSecond;
    uint64_t m_ticks = 0;
    bool m_realtime = false;
    bool m_timersStarted = false;
    bool m_darkForward = false, m_darkBack = false;
    std::vector<std::pair<int64_t, int64_t>> m_dark;  // from, to; nanoseconds since 1970
    std::unique_ptr<Nat> m_nat;
    std::vector<std::pair<int64_t, Nat::Mappings>> m_rebindings;
    CrossFlow m_cross;
};

Emulator::End Emulator::MakeEnd(const Side& side) {
    const Interface interface = FindInterface(side.ipv4);
    End end;
    end.node = CreateObject<Node>();
    InternetStackHelper stack;
    stack.Install(end.node);
    end.socket = OpenPacketSocket(interface, side.ipv4, side.ipv6);
    end.device = CreateObject<FrameDevice>(end.socket, interface);
    end.node->AddDevice(end.device);
    end.trace = std::make_shared<Trace>(side.trace);
    return end;
}

void Emulator::Watch(End& end, Counters& received, Counters& delivered) {
    const auto is = [this](const Packet& frame) { return m_link.subject.Of(frame, kEthernetHeader) == Kind::Subject; };
    const bool forward = &delivered == &m_forward;
    end.device->WhenSeen([this, trace = end.trace](const Packet& frame) { trace->Arrived(WallTime(), frame); });
    end.device->WhenDeparted([this, forward, trace = end.trace](const Packet& frame, int64_t sent) {
        m_lateness.Sent(forward, Simulator::Now().GetNanoSeconds(), sent);
        trace->Departed(m_started + sent, WallTime(), frame);
    });
    end.device->WhenReceived([is, &received](const Packet& frame) { received.received += is(frame); });
    end.device->WhenSent([is, &delivered](const Packet& frame) { delivered.delivered += is(frame); });
}

// The client's first packet starts the timers, and the competing flow's receiver is at its side.
void Emulator::WatchClient(End& end) {
    end.device->WhenReceived([this](const Packet& frame) {
        const Kind kind = m_link.subject.Of(frame, kEthernetHeader);
        if (kind == Kind::Subject && m_link.timersFromFirstPacket) {
            StartTimers();
        } else if (kind == Kind::Cross) {
            m_cross.Returned(frame, kEthernetHeader, WallTime());
        }
    });
    end.device->WhenSent([this](const Packet& frame) {
        if (m_link.subject.Of(frame, kEthernetHeader) == Kind::Cross) {
            m_cross.Delivered(frame, kEthernetHeader);
        }
    });
}

void Emulator::AddAddresses(const End& end, const Side& side, const Side& other, Ptr<NetDevice> link, const char* link4,
                            const char* link6, const char* peer4, const char* peer6) {
    const auto ipv4 = end.node->GetObject<Ipv4>();
    const auto ipv6 = end.node->GetObject<Ipv6>();
    const auto add = [&](Ptr<NetDevice> device, const char* four, const char* six) {
        const uint32_t index4 = ipv4->AddInterface(device);
        ipv4->AddAddress(index4, Ipv4InterfaceAddress(four, "255.255.255.0"));
        ipv4->SetUp(index4);
        const uint32_t index6 = ipv6->AddInterface(device);
        ipv6->AddAddress(index6, Ipv6InterfaceAddress(six, Ipv6Prefix(64)));
        ipv6->SetUp(index6);
    };
    add(end.device, side.node4, side.node6);
    add(link, link4, link6);
    ipv4->SetAttribute("IpForward", BooleanValue(true));
    ipv6->SetAttribute("IpForward", BooleanValue(true));
    // to the other side's networks alone: with default routes a stray packet would go to and fro until its TTL ends
    Ipv4StaticRoutingHelper().GetStaticRouting(ipv4)->AddNetworkRouteTo(other.network4, "255.255.255.0", peer4,
                                                                        ipv4->GetInterfaceForDevice(link));
    Ipv6StaticRoutingHelper().GetStaticRouting(ipv6)->AddNetworkRouteTo(other.network6, Ipv6Prefix(64), peer6,
                                                                        ipv6->GetInterfaceForDevice(link));
}

// A point-to-point channel with a delay of its own per direction, and perhaps a NAT at its left end.
class Channel : public PointToPointChannel {
  public:
    void SetDelays(Ptr<PointToPointNetDevice> left, Time fromLeft, Time fromRight) {
        m_left = left;
        m_fromLeft = fromLeft;
        m_fromRight = fromRight;
    }
    // `leave`: changes a packet that leaves the left end; whether it may go.
    void SetNat(std::function<bool(Packet&)> leave) { m_leave = std::move(leave); }
    bool TransmitStart(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> source, Time duration) override {
        const bool fromLeft = source == m_left;
        const auto target = GetPointToPointDevice(fromLeft ? 1 : 0);
        const auto copy = packet->Copy();
        if (!fromLeft || !m_leave || m_leave(*copy)) {
            Simulator::ScheduleWithContext(target->GetNode()->GetId(), duration + (fromLeft ? m_fromLeft : m_fromRight),
                                           &PointToPointNetDevice::Receive, target, copy);
        }
        return true;
    }

  private:
    Ptr<PointToPointNetDevice> m_left;
    Time m_fromLeft, m_fromRight;
    std::function<bool(Packet&)> m_leave;
};

// One end of the link: it queues what leaves its side, and impairs what arrives at its side.
Ptr<PointToPointNetDevice> Emulator::MakeDevice(Ptr<Node> node, const Direction& out, Counters& leaving,
                                                const Direction& in, Counters& arriving, uint32_t stream) {
    const auto device = CreateObject<PointToPointNetDevice>();
    device->SetAddress(Mac48Address::Allocate());
    device->SetDataRate(out.rate);
    const auto queue = CreateObject<DropTailQueue<Packet>>();
    const uint32_t size = out.queue + (m_link.queueMode == "paper" ? m_link.paperExtra : 0);
    queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, size));
    const auto drop = [this, &leaving](Ptr<const Packet> packet) {
        const Kind kind = m_link.subject.Of(*packet, kPppHeader);
        leaving.queueDrops += kind == Kind::Subject;
        if (kind == Kind::Cross && &leaving == &m_forward) {
            m_cross.Dropped();
        }
    };
    queue->TraceConnectWithoutContext("Drop", Callback<void, Ptr<const Packet>>(drop));
    device->SetQueue(queue);
    const auto model = CreateObject<Impairment>();
    const bool forward = &arriving == &m_forward;
    model->Configure(in, m_link.subject, m_link.seed, stream, &arriving, forward ? &m_darkForward : &m_darkBack,
                     forward ? m_nat.get() : nullptr);
    device->SetReceiveErrorModel(model);
    node->AddDevice(device);
    return device;
}

void Emulator::Join(End& left, End& right) {
    if (m_link.rebinding) {
        m_nat = std::make_unique<Nat>(m_link.rebinding->addresses, m_link.seed);
    }
    const auto leftDevice = MakeDevice(left.node, m_link.back, m_back, m_link.forward, m_forward, 1);
    const auto rightDevice = MakeDevice(right.node, m_link.forward, m_forward, m_link.back, m_back, 2);
    const auto channel = CreateObject<Channel>();
    leftDevice->Attach(channel);
    rightDevice->Attach(channel);
    channel->SetDelays(leftDevice, *m_link.back.delay, *m_link.forward.delay);
    if (m_nat) {
        channel->SetNat([this](Packet& packet) {
            const bool subject = m_link.subject.Of(packet, kPppHeader) == Kind::Subject;
            const bool goes = !subject || m_nat->Leave(packet);
            m_back.natDrops += !goes;
            return goes;
        });
    }
    AddAddresses(left, kLeft, kRight, leftDevice, "193.167.50.1", "fd00:cafe:cafe:50::1", "193.167.50.2",
                 "fd00:cafe:cafe:50::2");
    AddAddresses(right, kRight, kLeft, rightDevice, "193.167.50.2", "fd00:cafe:cafe:50::2", "193.167.50.1",
                 "fd00:cafe:cafe:50::1");
}

void Emulator::StartTimers() {
    if (std::exchange(m_timersStarted, true)) {
        return;
    }
    if (m_link.blackhole) {
        Simulator::Schedule(m_link.blackhole->on, &Emulator::GoDark, this);
    }
    if (m_link.rebinding) {
        Simulator::Schedule(m_link.rebinding->first, &Emulator::Rebind, this);
    }
}

void Emulator::GoDark() {
    m_darkForward = m_link.blackhole->toClient;
    m_darkBack = m_link.blackhole->toServer;
    m_dark.emplace_back(WallTime(), 0);
    Simulator::Schedule(m_link.blackhole->off, &Emulator::GoLight, this);
}

void Emulator::GoLight() {
    m_darkForward = m_darkBack = false;
    m_dark.back().second = WallTime();
    if (m_dark.size() < m_link.blackhole->repeat) {
        Simulator::Schedule(m_link.blackhole->on, &Emulator::GoDark, this);
    }
}

void Emulator::Rebind() {
    m_rebindings.emplace_back(WallTime(), m_nat->Rebind());
    if (m_link.rebinding->period) {
        Simulator::Schedule(*m_link.rebinding->period, &Emulator::Rebind, this);
    }
}

void Emulator::Tick() {
    if (g_stop) {
        Simulator::Stop();
        return;
    }
    const double lag = InSeconds(RealTime() - Simulator::Now().GetNanoSeconds());
    m_lagSum += lag;
    m_lagMax = std::max(m_lagMax, lag);
    if (m_ticks++ % kTicksPerSecond == 0) {
        m_lagPerSecond.push_back(0);
    }
    m_lagPerSecond.back() = std::max(m_lagPerSecond.back(), lag);
    Simulator::Schedule(Seconds(1.0 / kTicksPerSecond), &Emulator::Tick, this);
}

void WriteCounters(std::ostream& out, const char* name, const Counters& counters) {
    out << "\"" << name << "\":{\"received\":" << counters.received << ",\"delivered\":" << counters.delivered
        << ",\"queue_drops\":" << counters.queueDrops << ",\"loss_drops\":" << counters.lossDrops
        << ",\"corrupted\":" << counters.corrupted << ",\"listed_drops\":" << counters.listedDrops
        << ",\"blackhole_drops\":" << counters.blackholeDrops << ",\"nat_drops\":" << counters.natDrops
        << ",\"in_flight\":" << counters.InFlight() << "}";
}

// `write` for each of `all`, in the brackets of a list.
template <typename All, typename Write>
void WriteList(std::ostream& out, const char* name, const All& all, const Write& write) {
    out << ",\"" << name << "\":[";
    bool first = true;
    for (const auto& one : all) {
        out << (std::exchange(first, false) ? "" : ",");
        write(one);
    }
    out << "]";
}

void Emulator::WriteReport(const End& left, const End& right, int64_t stopped) const {
    std::ofstream out("/logs/link.json");
    out << std::fixed << std::setprecision(6);
    out << "{\"scenario\":\"" << m_link.scenario << "\",\"seed\":" << m_link.seed << ",\"queue_mode\":\""
        << m_link.queueMode << "\",\"started\":" << InSeconds(m_started) << ",\"stopped\":" << InSeconds(stopped)
        << ",\"realtime_priority\":" << (m_realtime ? "true" : "false")
        << ",\"lag\":{\"mean\":" << (m_ticks ? m_lagSum / m_ticks : 0) << ",\"max\":" << m_lagMax
        << ",\"samples\":" << m_ticks;
    WriteList(out, "max_per_second", m_lagPerSecond, [&out](double lag) { out << lag; });
    out << "},\"lateness\":";
    m_lateness.Write(out, m_started);
    out << ",\"receive_overflows\":" << Overflows(left.socket) + Overflows(right.socket) << ",";
    WriteCounters(out, "forward", m_forward);
    out << ",";
    WriteCounters(out, "return", m_back);
    WriteList(out, "blackholes", m_dark, [&out, stopped](const auto& dark) {
        out << "[" << InSeconds(dark.first) << "," << InSeconds(dark.second ? dark.second : stopped) << "]";
    });
    WriteList(out, "rebinds", m_rebindings, [&out](const auto& rebinding) {
        out << "{\"time\":" << InSeconds(rebinding.first);
        WriteList(out, "mappings", rebinding.second, [&out](const auto& mapping) {
            out << "{\"inside\":\"" << mapping.first << "\",\"outside\":\"" << mapping.second << "\"}";
        });
        out << "}";
    });
    out << ",\"cross_traffic\":";
    if (m_link.subject.crossPort) {
        m_cross.Write(out);
    } else {
        out << "null";
    }
    out << "}\n";
    if (!out.flush()) {
        Fail(4, "/logs/link.json cannot be written");
    }
}

void Configure() {
    FollowRealTime();
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(true));
    // ns-3's defaults delay the first packet by up to 11 ms, keep 3 packets per unresolved address, and ask again
    // after two minutes
    const StringValue never("ns3::ConstantRandomVariable[Constant=0]");
    Config::SetDefault("ns3::ArpL3Protocol::RequestJitter", never);
    Config::SetDefault("ns3::Icmpv6L4Protocol::SolicitationJitter", never);
    Config::SetDefault("ns3::ArpCache::PendingQueueSize", UintegerValue(10000));
    Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Hours(24)));
    Config::SetDefault("ns3::NdiscCache::UnresolvedQueueSize", UintegerValue(10000));
    Config::SetDefault("ns3::Icmpv6L4Protocol::ReachableTime", TimeValue(Hours(24)));
    Config::SetDefault("ns3::Icmpv6L4Protocol::DAD", BooleanValue(false));
}

double Patience() {
    const char* text = std::getenv("WAITTIMEOUT");
    double seconds = kPatience;
    if (text && *text) {
        const char* last = text + std::strlen(text);
        const auto [end, error] = std::from_chars(text, last, seconds);
        if (error != std::errc() || end != last || !(seconds >= 0)) {
            Fail(2, std::string("WAITTIMEOUT=") + text + ": expected seconds");
        }
    }
    return seconds;
}

// Waits for the server if the environment asks for it; false if it was told to stop meanwhile.
bool ServerReady() {
    const char* server = std::getenv("WAITFORSERVER");
    if (!server || !*server) {
        return true;
    }
    const double seconds = Patience();
    Say("waiting");
    if (!AwaitServer(server, seconds, g_stop)) {
        if (g_stop) {
            return false;
        }
        char message[200];
        std::snprintf(message, sizeof message, "%s did not answer within %g s", server, seconds);
        Fail(3, message);
    }
    Say("server-ready");
    return true;
}

void Emulator::Start(const End& left, const End& right) {
    const double rate = static_cast<double>(std::max(m_link.forward.rate, m_link.back.rate).GetBitRate());
    const double factor = std::clamp(rate / kReservedRate, 1.0, kMostReserved);
    m_realtime =
        TakeRealtimePriority({factor * kForwarding.share, kForwarding.period}) || TakeRealtimePriority(kForwarding);
    left.trace->Start();
    right.trace->Start();
    m_started = Nanoseconds(CLOCK_REALTIME) - RealTime();
    OpenStartSignal(kStartSignalPort);
    std::printf("{\"event\":\"running\",\"started\":%.6f}\n", InSeconds(m_started));
    std::fflush(stdout);
    if (!m_link.timersFromFirstPacket) {
        StartTimers();
    }
    Tick();
}

int Emulator::Run() {
    Configure();
    if (!ServerReady()) {
        return 0;
    }
    End left = MakeEnd(kLeft), right = MakeEnd(kRight);
    Join(left, right);
    Watch(left, m_back, m_forward);
    WatchClient(left);
    Watch(right, m_forward, m_back);
    Simulator::ScheduleNow([&] { Start(left, right); });
    RunInRealTime();
    const int64_t stopped = Nanoseconds(CLOCK_REALTIME);
    left.trace->Close();
    right.trace->Close();
    WriteReport(left, right, stopped);
    Simulator::Destroy();
    Say("stopped");
    return 0;
}

}  // namespace

int Emulate(const Link& link, const Options& options) {
    FailIfFaulty(link, options);
    const auto stop = [](int) { g_stop = 1; };
    std::signal(SIGTERM, stop);
    std::signal(SIGINT, stop);
    return Emulator(link).Run();
}

}  // namespace quicsat

#include "emulator.h"

#include "socket.h"
#include "trace.h"

#include "ns3/core-module.h"
#include "ns3/fd-net-device-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <memory>
#include <stdexcept>
#include <vector>

using namespace ns3;

namespace quicsat {

namespace {

constexpr uint16_t kStartSignalPort = 57832;  // fixed by the QUIC Interop Runner
constexpr uint32_t kEthernetHeader = 14;
constexpr uint32_t kPppHeader = 2;
constexpr double kNanoseconds = 1e9;
constexpr uint64_t kTicksPerSecond = 100;
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
                        "fd00:cafe:cafe:0::3", "193.167.0.0", "fd00:cafe:cafe:0::"};
constexpr Side kRight = {"/logs/trace_node_right.pcap", "193.167.100.2", "fd00:cafe:cafe:100::2", "193.167.100.3",
                         "fd00:cafe:cafe:100::3", "193.167.100.0", "fd00:cafe:cafe:100::"};

int64_t WallClock() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

double InSeconds(int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / kNanoseconds;
}

void Say(const std::string& event) {
    std::printf("{\"event\":\"%s\"}\n", event.c_str());
    std::fflush(stdout);
}

class Emulator {
  public:
    explicit Emulator(const Link& link) : m_link(link) {}
    int Run();

  private:
    struct End {
        Ptr<Node> node;
        Ptr<FdNetDevice> device;
        std::shared_ptr<Trace> trace;
        int socket;
    };

    End MakeEnd(const Side& side);
    void Join(End& left, End& right);
    void AddAddresses(const End& end, const Side& side, const Side& other, Ptr<NetDevice> link, const char* link4,
                      const char* link6, const char* peer4, const char* peer6);
    Ptr<PointToPointNetDevice> MakeDevice(Ptr<Node> node, const Direction& out, Counters& leaving, const Loss& loss,
                                          Counters& arriving, uint32_t stream);
    void Watch(End& end, Counters& received, Counters& delivered);
    void Record(Trace& trace, const Packet& packet) const;
    void Start(const End& left, const End& right);
    void Tick();
    void WriteReport(const End& left, const End& right, int64_t stopped) const;

    Link m_link;
    Counters m_forward, m_back;
    int64_t m_started = 0;  // wall clock at simulation time 0, nanoseconds since 1970
    double m_lagSum = 0, m_lagMax = 0;
    std::vector<double> m_lagPerSecond;
    uint64_t m_ticks = 0;
    bool m_realtime = false;
};

Emulator::End Emulator::MakeEnd(const Side& side) {
    const Interface interface = FindInterface(side.ipv4);
    End end;
    end.node = CreateObject<Node>();
    InternetStackHelper stack;
    stack.Install(end.node);
    end.device = CreateObject<FdNetDevice>();
    Mac48Address mac;
    mac.CopyFrom(interface.mac);
    end.device->SetAddress(mac);
    end.device->SetAttribute("RxQueueSize", UintegerValue(100000));
    end.socket = OpenPacketSocket(interface, side.ipv4, side.ipv6);
    end.device->SetFileDescriptor(end.socket);
    end.node->AddDevice(end.device);
    end.trace = std::make_shared<Trace>(side.trace);
    return end;
}

void Emulator::Record(Trace& trace, const Packet& packet) const {
    trace.Write(m_started + Simulator::Now().GetNanoSeconds(), packet);
}

void Emulator::Watch(End& end, Counters& received, Counters& delivered) {
    const auto trace = end.trace;
    end.device->TraceConnectWithoutContext(
        "PromiscSniffer", Callback<void, Ptr<const Packet>>([this, trace](Ptr<const Packet> packet) {
            Record(*trace, *packet);
        }));
    end.device->TraceConnectWithoutContext(
        "MacRx", Callback<void, Ptr<const Packet>>([&received](Ptr<const Packet> packet) {
            received.received += IsUdp(packet, kEthernetHeader);
        }));
    end.device->TraceConnectWithoutContext(
        "MacTx", Callback<void, Ptr<const Packet>>([&delivered](Ptr<const Packet> packet) {
            delivered.delivered += IsUdp(packet, kEthernetHeader);
        }));
}

void Emulator::AddAddresses(const End& end, const Side& side, const Side& other, Ptr<NetDevice> link,
                            const char* link4, const char* link6, const char* peer4, const char* peer6) {
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
    Ipv4StaticRoutingHelper().GetStaticRouting(ipv4)->AddNetworkRouteTo(
        other.network4, "255.255.255.0", peer4, ipv4->GetInterfaceForDevice(link));
    Ipv6StaticRoutingHelper().GetStaticRouting(ipv6)->AddNetworkRouteTo(
        other.network6, Ipv6Prefix(64), peer6, ipv6->GetInterfaceForDevice(link));
}

// A point-to-point channel with a delay of its own per direction.
class Channel : public PointToPointChannel {
  public:
    void SetDelays(Ptr<PointToPointNetDevice> left, Time fromLeft, Time fromRight) {
        m_left = left;
        m_fromLeft = fromLeft;
        m_fromRight = fromRight;
    }
    bool TransmitStart(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> source, Time duration) override {
        const bool fromLeft = source == m_left;
        const auto target = GetPointToPointDevice(fromLeft ? 1 : 0);
        Simulator::ScheduleWithContext(target->GetNode()->GetId(), duration + (fromLeft ? m_fromLeft : m_fromRight),
                                       &PointToPointNetDevice::Receive, target, packet->Copy());
        return true;
    }

  private:
    Ptr<PointToPointNetDevice> m_left;
    Time m_fromLeft, m_fromRight;
};

// One end of the link: it queues what leaves its side, and loses what arrives at its side.
Ptr<PointToPointNetDevice> Emulator::MakeDevice(
    Ptr<Node> node, const Direction& out, Counters& leaving, const Loss& loss, Counters& arriving, uint32_t stream) {
    const auto device = CreateObject<PointToPointNetDevice>();
    device->SetAddress(Mac48Address::Allocate());
    device->SetDataRate(out.rate);
    const auto queue = CreateObject<DropTailQueue<Packet>>();
    const uint32_t size = out.queue + (m_link.queueMode == "paper" ? m_link.paperExtra : 0);
    queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, size));
    queue->TraceConnectWithoutContext("Drop", Callback<void, Ptr<const Packet>>([&leaving](Ptr<const Packet> packet) {
                                          leaving.queueDrops += IsUdp(packet, kPppHeader);
                                      }));
    device->SetQueue(queue);
    const auto model = CreateObject<UdpLoss>();
    model->Configure(loss, {m_link.seed, stream}, &arriving);
    device->SetReceiveErrorModel(model);
    node->AddDevice(device);
    return device;
}

void Emulator::Join(End& left, End& right) {
    const auto leftDevice = MakeDevice(left.node, m_link.back, m_back, m_link.forward.loss, m_forward, 1);
    const auto rightDevice = MakeDevice(right.node, m_link.forward, m_forward, m_link.back.loss, m_back, 2);
    const auto channel = CreateObject<Channel>();
    leftDevice->Attach(channel);
    rightDevice->Attach(channel);
    channel->SetDelays(leftDevice, *m_link.back.delay, *m_link.forward.delay);
    AddAddresses(left, kLeft, kRight, leftDevice, "193.167.50.1", "fd00:cafe:cafe:50::1", "193.167.50.2", "fd00:cafe:cafe:50::2");
    AddAddresses(right, kRight, kLeft, rightDevice, "193.167.50.2", "fd00:cafe:cafe:50::2", "193.167.50.1", "fd00:cafe:cafe:50::1");
}

void Emulator::Tick() {
    if (g_stop) {
        Simulator::Stop();
        return;
    }
    const auto simulator = DynamicCast<RealtimeSimulatorImpl>(Simulator::GetImplementation());
    const double lag = (simulator->RealtimeNow() - Simulator::Now()).GetSeconds();
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
        << ",\"in_flight\":" << counters.InFlight() << "}";
}

void Emulator::WriteReport(const End& left, const End& right, int64_t stopped) const {
    std::ofstream out("/logs/link.json");
    out << std::fixed << std::setprecision(6);
    out << "{\"scenario\":\"" << m_link.scenario << "\",\"seed\":" << m_link.seed << ",\"queue_mode\":\""
        << m_link.queueMode << "\",\"started\":" << InSeconds(m_started) << ",\"stopped\":" << InSeconds(stopped)
        << ",\"realtime_priority\":" << (m_realtime ? "true" : "false") << ",\"lag\":{\"mean\":"
        << (m_ticks ? m_lagSum / m_ticks : 0) << ",\"max\":" << m_lagMax << ",\"samples\":" << m_ticks
        << ",\"max_per_second\":[";
    for (size_t second = 0; second < m_lagPerSecond.size(); ++second) {
        out << (second ? "," : "") << m_lagPerSecond[second];
    }
    out << "]},\"receive_overflows\":" << Overflows(left.socket) + Overflows(right.socket) << ",";
    WriteCounters(out, "forward", m_forward);
    out << ",";
    WriteCounters(out, "return", m_back);
    out << "}\n";
    if (!out.flush()) {
        Fail(4, "/logs/link.json cannot be written");
    }
}

void Configure() {
    GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::RealtimeSimulatorImpl"));
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
    // now, so that making the topology does not use up the budget, and before the devices start their threads, which
    // inherit it
    m_realtime = TakeRealtimePriority();
    left.trace->Start();
    right.trace->Start();
    const auto simulator = DynamicCast<RealtimeSimulatorImpl>(Simulator::GetImplementation());
    m_started = WallClock() - simulator->RealtimeNow().GetNanoSeconds();
    OpenStartSignal(kStartSignalPort);
    std::printf("{\"event\":\"running\",\"started\":%.6f}\n", InSeconds(m_started));
    std::fflush(stdout);
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
    Watch(right, m_forward, m_back);
    Simulator::ScheduleNow([&] { Start(left, right); });
    Simulator::Run();
    const int64_t stopped = WallClock();
    left.trace->Close();
    right.trace->Close();
    WriteReport(left, right, stopped);
    Simulator::Destroy();
    Say("stopped");
    return 0;
}

// ---- the link's faults --------------------------------------------------------------------------

void CheckDirection(const Direction& direction, const std::string& name, const std::string& towards,
                    std::vector<std::string>& faults) {
    const auto expect = [&](bool given, const std::string& what) {
        if (!given) {
            faults.push_back("the link has no " + what + " from " + name);
        }
    };
    expect(direction.delay.has_value(), "delay");
    expect(direction.rate.GetBitRate() > 0, "rate");
    expect(direction.queue > 0, "queue");
    if (direction.loss.rate > 0 && direction.loss.IsBursty()) {
        faults.push_back("--drop-rate-to-" + towards + " and --good-bad-prob-to-" + towards + " exclude each other");
    }
}

void FailIfFaulty(const Link& link, std::vector<std::string> faults) {
    if (faults.empty()) {  // else what is missing may just be what was misspelt
        CheckDirection(link.forward, "server to client", "client", faults);
        CheckDirection(link.back, "client to server", "server", faults);
    }
    std::string message;
    for (const std::string& fault : faults) {
        message += (message.empty() ? "" : "; ") + fault;
    }
    if (!faults.empty()) {
        Fail(2, link.scenario + ": " + message);
    }
}

}  // namespace

void AddCommonOptions(Options& options, Link& link) {
    const auto add = [&options](const std::string& side, Loss& loss) {
        options.Add("drop-rate-to-" + side, "independent loss of UDP packets, per cent",
                    [&loss](const std::string& text) { loss.rate = ReadPercent(text); });
        options.Add("good-bad-prob-to-" + side, "Gilbert-Elliott loss: from good to bad, 0 to 1",
                    [&loss](const std::string& text) { loss.goodToBad = ReadProbability(text); });
        options.Add("bad-good-prob-to-" + side, "Gilbert-Elliott loss: from bad to good, 0 to 1",
                    [&loss](const std::string& text) { loss.badToGood = ReadProbability(text); });
    };
    add("client", link.forward.loss);
    add("server", link.back.loss);
    options.Add("queue-mode", "exact, or paper: as long as QIR-SE's queue really was", [&link](const std::string& text) {
        if (text != "exact" && text != "paper") {
            throw std::invalid_argument("exact or paper");
        }
        link.queueMode = text;
    });
    options.Add("seed", "of the losses", [&link](const std::string& text) { link.seed = ReadSeed(text); });
}

int Emulate(const Link& link, const Options& options) {
    FailIfFaulty(link, options.Faults());
    const auto stop = [](int) { g_stop = 1; };
    std::signal(SIGTERM, stop);
    std::signal(SIGINT, stop);
    return Emulator(link).Run();
}

}  // namespace quicsat

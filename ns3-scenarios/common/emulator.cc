#include "emulator.h"

#include "client_side.h"
#include "clock.h"
#include "cross.h"
#include "frames.h"
#include "impairment.h"
#include "lateness.h"
#include "nat.h"
#include "queue.h"
#include "socket.h"
#include "trace.h"
#include "wire.h"

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
#include <sstream>
#include <tuple>
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
    // ns-3's own addresses, other than the kernel's, so that only the kernel answers for those; where it routes
    const char* node4 = nullptr;
    const char* node6 = nullptr;
    const char* network4 = nullptr;  // /24
    const char* network6 = nullptr;  // /64
};
constexpr Side kLeft = {"/logs/trace_node_left.pcap", "193.167.0.2", "fd00:cafe:cafe:0::2", "193.167.0.3",
                        "fd00:cafe:cafe:0::3",        "193.167.0.0", "fd00:cafe:cafe:0::"};
constexpr Side kRight = {"/logs/trace_node_right.pcap", "193.167.100.2", "fd00:cafe:cafe:100::2", "193.167.100.3",
                         "fd00:cafe:cafe:100::3",       "193.167.100.0", "fd00:cafe:cafe:100::"};

// The simulator's ends of the link at the client's side: towards the client, and towards the gateway next to it.
constexpr Side kClient = {"/logs/trace_client.pcap", "198.18.1.1", "fd00:cafe:cafe:51::1"};
constexpr Side kGateway = {nullptr, "198.18.1.2", "fd00:cafe:cafe:51::2"};
constexpr uint32_t kForwardStream = 5, kReturnStream = 6;  // others than those of the link itself

constexpr const char *kLeftLink = "193.167.50.1", *kRightLink = "193.167.50.2";  // the ends of the link itself

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
    void JoinClientSide();
    void AddAddresses(const End& end, const Side& side, const Side& other, Ptr<NetDevice> link, const char* link4,
                      const char* link6, const char* peer4, const char* peer6);
    Ptr<Transmitter> MakeDevice(Ptr<Node> node, const Direction& out, Counters& leaving, const Direction& in,
                                Counters& arriving, uint32_t stream);
    void Record(const End& end, bool forward);
    void Watch(End& end, Counters& received, Counters& delivered);
    void WatchClient(End& end);
    std::vector<std::shared_ptr<Trace>> Traces(const End& left, const End& right) const;
    void Start(const End& left, const End& right);
    int64_t WallTime() const { return m_started + Simulator::Now().GetNanoSeconds(); }
    void Prepare(const Direction& direction, Ptr<Transmitter> transmitter, Ptr<Wire> wire, bool fromLeft,
                 Conditions& now);
    void StartElements();
    void StartTimers();
    void GoDark();
    void GoLight();
    void Rebind();
    void Tick();
    void WriteElements(std::ostream& out) const;
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
    Conditions m_forwardNow, m_backNow;
    std::vector<std::pair<int64_t, int64_t>> m_dark;  // from, to; nanoseconds since 1970
    std::unique_ptr<Nat> m_nat;
    std::vector<std::pair<int64_t, Nat::Mappings>> m_rebindings;
    CrossFlow m_cross;
    std::unique_ptr<Player> m_forwardPlayer, m_backPlayer;
    std::unique_ptr<Terminal> m_terminal;
    std::unique_ptr<UdpCrossSource> m_forwardCross, m_backCross;
    std::vector<End> m_clientSide;  // towards the client and the gateway next to it, or none
    std::unique_ptr<Passage> m_clientForward, m_clientBack;
};

Emulator::End Emulator::MakeEnd(const Side& side) {
    const Interface interface = FindInterface(side.ipv4);
    End end;
    end.node = CreateObject<Node>();
    if (side.node4) {
        InternetStackHelper().Install(end.node);
    }
    end.socket = OpenPacketSocket(interface, side.ipv4, side.ipv6);
    end.device = CreateObject<FrameDevice>(end.socket, interface);
    end.node->AddDevice(end.device);
    if (side.trace) {
        end.trace = std::make_shared<Trace>(side.trace);
    }
    return end;
}

// Writes the trace of an end, if it has one, and how late frames leave there; `forward`: those go to the client.
void Emulator::Record(const End& end, bool forward) {
    if (end.trace) {
        end.device->WhenSeen([this, trace = end.trace](const Packet& frame) { trace->Arrived(WallTime(), frame); });
    }
    end.device->WhenDeparted([this, forward, trace = end.trace](const Packet& frame, int64_t sent) {
        m_lateness.Sent(forward, Simulator::Now().GetNanoSeconds(), sent);
        if (trace) {
            trace->Departed(m_started + sent, WallTime(), frame);
        }
    });
}

void Emulator::JoinClientSide() {
    if (!m_link.clientSide) {
        return;
    }
    m_clientSide = {MakeEnd(kClient), MakeEnd(kGateway)};
    const End &client = m_clientSide[0], &gateway = m_clientSide[1];
    Record(client, true);
    Record(gateway, false);
    const Subject subject = m_link.clientSide.subject.value_or(m_link.subject);
    m_clientForward = std::make_unique<Passage>(m_link.clientSide.forward, subject, m_link.seed, kForwardStream,
                                                gateway.device, client.device);
    m_clientBack = std::make_unique<Passage>(m_link.clientSide.back, subject, m_link.seed, kReturnStream, client.device,
                                             gateway.device);
}

void Emulator::Watch(End& end, Counters& received, Counters& delivered) {
    const auto is = [this](const Packet& frame) { return m_link.subject.Of(frame, kEthernetHeader) == Kind::Subject; };
    Record(end, &delivered == &m_forward);
    end.device->WhenReceived([is, &received](const Packet& frame) { received.received += is(frame); });
    end.device->WhenSent([is, &delivered](const Packet& frame) { delivered.delivered += is(frame); });
}

// The client's first packet starts the timers, and the competing flow's receiver is at its side.
void Emulator::WatchClient(End& end) {
    end.device->WhenReceived([this](const Packet& frame) {
        const Kind kind = m_link.subject.Of(frame, kEthernetHeader);
        if (kind == Kind::Subject) {
            StartElements();
            if (m_link.timersFromFirstPacket) {
                StartTimers();
            }
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

// One end of the link: it queues what leaves its side, and impairs what arrives at its side.
Ptr<Transmitter> Emulator::MakeDevice(Ptr<Node> node, const Direction& out, Counters& leaving, const Direction& in,
                                      Counters& arriving, uint32_t stream) {
    const auto device = CreateObject<Transmitter>();
    device->SetAddress(Mac48Address::Allocate());
    const uint32_t extra = m_link.queueMode == "paper" ? m_link.paperExtra : 0;
    const auto queue = MakeQueue(out, kPppHeader, extra, stream, [this, &leaving](const Packet& packet) {
        leaving.ecnMarks += m_link.subject.Of(packet, kPppHeader) == Kind::Subject;
    });
    const auto drop = [this, &leaving](Ptr<const Packet> packet) {
        auto& source = &leaving == &m_forward ? m_forwardCross : m_backCross;
        if (source && UdpCrossSource::IsOne(*packet)) {
            source->Dropped();
            return;
        }
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
    model->Configure(in, m_link.subject, m_link.seed, stream, &arriving, forward ? &m_forwardNow : &m_backNow,
                     forward ? m_nat.get() : nullptr, PeekPointer(device));
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
    const auto wire = CreateObject<Wire>();
    leftDevice->Attach(wire);
    rightDevice->Attach(wire);
    wire->SetLeft(leftDevice);
    Prepare(m_link.back, leftDevice, wire, true, m_backNow);
    Prepare(m_link.forward, rightDevice, wire, false, m_forwardNow);
    if (m_link.forward.udpCross) {
        m_forwardCross = std::make_unique<UdpCrossSource>(m_link.forward.udpCross, rightDevice, kRightLink, kLeftLink);
    }
    if (m_link.back.udpCross) {
        m_backCross = std::make_unique<UdpCrossSource>(m_link.back.udpCross, leftDevice, kLeftLink, kRightLink);
    }
    if (m_nat) {
        wire->SetNat([this](Packet& packet) {
            const bool subject = m_link.subject.Of(packet, kPppHeader) == Kind::Subject;
            const bool goes = !subject || m_nat->Leave(packet);
            m_back.natDrops += !goes;
            return goes;
        });
    }
    AddAddresses(left, kLeft, kRight, leftDevice, kLeftLink, "fd00:cafe:cafe:50::1", kRightLink,
                 "fd00:cafe:cafe:50::2");
    AddAddresses(right, kRight, kLeft, rightDevice, kRightLink, "fd00:cafe:cafe:50::2", kLeftLink,
                 "fd00:cafe:cafe:50::1");
}

// Rate and delay of a direction, at first and as its profile changes them; and whether its capacity is on demand.
void Emulator::Prepare(const Direction& direction, Ptr<Transmitter> transmitter, Ptr<Wire> wire, bool fromLeft,
                       Conditions& now) {
    Terminal* terminal = nullptr;
    if (direction.demand) {
        m_terminal = std::make_unique<Terminal>(direction.demand, transmitter);
        terminal = m_terminal.get();
    }
    const auto setRate = [transmitter, terminal](DataRate rate) {
        if (terminal) {
            terminal->SetRate(rate);
        } else {
            transmitter->SetRate(rate);
        }
    };
    setRate(direction.rate);
    wire->SetDelay(fromLeft, *direction.delay);
    if (direction.profile) {
        auto& player = fromLeft ? m_backPlayer : m_forwardPlayer;
        player =
            std::make_unique<Player>(direction.profile, [&direction, setRate, wire, fromLeft, &now](const Step& step) {
                setRate(step.rate.value_or(direction.rate));
                wire->SetDelay(fromLeft, step.delay.value_or(*direction.delay));
                now.loss = step.loss.value_or(0);
            });
    }
}

void Emulator::StartElements() {
    for (const auto& player : {m_forwardPlayer.get(), m_backPlayer.get()}) {
        if (player) {
            player->Begin();
        }
    }
    for (const auto& source : {m_forwardCross.get(), m_backCross.get()}) {
        if (source) {
            source->Begin();
        }
    }
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
    m_forwardNow.dark = m_link.blackhole->toClient;
    m_backNow.dark = m_link.blackhole->toServer;
    m_dark.emplace_back(WallTime(), 0);
    Simulator::Schedule(m_link.blackhole->off, &Emulator::GoLight, this);
}

void Emulator::GoLight() {
    m_forwardNow.dark = m_backNow.dark = false;
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
        << ",\"ecn_marks\":" << counters.ecnMarks << ",\"duplicated\":" << counters.duplicated
        << ",\"reordered\":" << counters.reordered << ",\"out_of_order\":" << counters.outOfOrder
        << ",\"jitter\":{\"packets\":" << counters.jittered
        << ",\"mean\":" << (counters.jittered ? counters.jitterSum / static_cast<double>(counters.jittered) : 0)
        << ",\"max\":" << counters.jitterMost << "},\"in_flight\":" << counters.InFlight() << "}";
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

// What only some links have.
void Emulator::WriteElements(std::ostream& out) const {
    for (const auto& [name, player] :
         {std::pair("forward_profile", m_forwardPlayer.get()), std::pair("return_profile", m_backPlayer.get())}) {
        if (player) {
            out << ",\"" << name << "\":";
            player->Write(out, m_started);
        }
    }
    for (const auto& [name, source, counters] :
         {std::tuple("forward_udp_cross_traffic", m_forwardCross.get(), &m_forward),
          std::tuple("return_udp_cross_traffic", m_backCross.get(), &m_back)}) {
        if (source) {
            out << ",\"" << name << "\":";
            source->Write(out, counters->udpCrossDelivered, m_started);
        }
    }
    if (m_terminal) {
        out << ",\"demand\":";
        m_terminal->Write(out);
    }
    if (m_clientForward && m_clientBack) {
        out << ",\"client_side\":{";
        WriteCounters(out, "forward", m_clientForward->Count());
        out << ",";
        WriteCounters(out, "return", m_clientBack->Count());
        out << "}";
    }
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
    uint64_t overflows = Overflows(left.socket) + Overflows(right.socket);
    for (const End& end : m_clientSide) {
        overflows += Overflows(end.socket);
    }
    out << ",\"receive_overflows\":" << overflows << ",";
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
    WriteElements(out);
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

void Configure(uint32_t seed) {
    FollowRealTime();
    RngSeedManager::SetRun(seed);  // of the disciplines of queues
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

// Waits for the servers that the environment names, separated by blanks; false if it was told to stop meanwhile.
bool ServerReady() {
    const char* server = std::getenv("WAITFORSERVER");
    if (!server || !*server) {
        return true;
    }
    const double seconds = Patience();
    Say("waiting");
    std::istringstream names(server);
    for (std::string name; names >> name;) {
        if (!AwaitServer(name, seconds, g_stop)) {
            if (g_stop) {
                return false;
            }
            char message[200];
            std::snprintf(message, sizeof message, "%s did not answer within %g s", name.c_str(), seconds);
            Fail(3, message);
        }
    }
    Say("server-ready");
    return true;
}

// The highest rate that a direction can have.
DataRate Highest(const Direction& direction) {
    DataRate highest = direction.rate;
    for (const Step& step : direction.profile.steps) {
        highest = std::max(highest, step.rate.value_or(highest));
    }
    return highest;
}

std::vector<std::shared_ptr<Trace>> Emulator::Traces(const End& left, const End& right) const {
    std::vector<std::shared_ptr<Trace>> traces = {left.trace, right.trace};
    for (const End& end : m_clientSide) {
        if (end.trace) {
            traces.push_back(end.trace);
        }
    }
    return traces;
}

void Emulator::Start(const End& left, const End& right) {
    const double rate = static_cast<double>(std::max(Highest(m_link.forward), Highest(m_link.back)).GetBitRate());
    const double links = m_link.clientSide ? 2 : 1;
    const double factor = std::clamp(links * rate / kReservedRate, links, kMostReserved);
    m_realtime =
        TakeRealtimePriority({factor * kForwarding.share, kForwarding.period}) || TakeRealtimePriority(kForwarding);
    for (const auto& trace : Traces(left, right)) {
        trace->Start();
    }
    m_started = Nanoseconds(CLOCK_REALTIME) - RealTime();
    OpenStartSignal(kStartSignalPort);
    std::printf("{\"event\":\"running\",\"started\":%.6f}\n", InSeconds(m_started));
    std::fflush(stdout);
    if (m_terminal) {
        m_terminal->Begin();
    }
    if (!m_link.timersFromFirstPacket) {
        StartTimers();
    }
    Tick();
}

int Emulator::Run() {
    Configure(m_link.seed);
    if (!ServerReady()) {
        return 0;
    }
    End left = MakeEnd(kLeft), right = MakeEnd(kRight);
    Join(left, right);
    JoinClientSide();
    Watch(left, m_back, m_forward);
    WatchClient(left);
    Watch(right, m_forward, m_back);
    Simulator::ScheduleNow([&] { Start(left, right); });
    RunInRealTime();
    const int64_t stopped = Nanoseconds(CLOCK_REALTIME);
    for (const auto& trace : Traces(left, right)) {
        trace->Close();
    }
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

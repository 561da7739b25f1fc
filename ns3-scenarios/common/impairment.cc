#include "impairment.h"

#include "ns3/simulator.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace quicsat {

namespace {

constexpr uint32_t kCorruptible = 50;  // first bytes of the payload, as in the QUIC Interop Runner
constexpr uint8_t kLongHeader = 0x80;
constexpr uint32_t kVersionEnd = 5;
constexpr double kMostDeviations = 3;

// A number from 0 to less than 1; std::uniform_real_distribution may differ between libraries.
double Draw(std::mt19937_64& random) {
    return static_cast<double>(random() >> 11) * 0x1p-53;
}

// Version Negotiation (RFC 9000, section 17.2.1), or what would be taken for it: nothing protects it.
bool IsVersionNegotiation(std::span<const uint8_t> payload) {
    return payload.size() >= kVersionEnd && payload[0] & kLongHeader &&
           std::all_of(payload.begin() + 1, payload.begin() + kVersionEnd, [](uint8_t byte) { return byte == 0; });
}

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(Impairment);

ns3::TypeId Impairment::GetTypeId() {
    static ns3::TypeId id =
        ns3::TypeId("quicsat::Impairment").SetParent<ns3::ErrorModel>().AddConstructor<Impairment>();
    return id;
}

void Impairment::Configure(const Direction& direction, const Subject& subject, uint32_t seed, uint32_t stream,
                           Counters* counters, const Conditions* now, Nat* nat, ns3::PointToPointNetDevice* device) {
    m_direction = direction;
    m_subject = subject;
    m_counters = counters;
    m_now = now;
    m_nat = nat;
    m_device = device;
    m_lossCap = Cap(direction.loss.longestBurst);
    m_corruptionCap = Cap(direction.corruption.longestBurst);
    std::seed_seq losses = {seed, stream}, corruptions = {seed, stream + 2};
    std::seed_seq profileLosses = {seed, stream, 10U};
    m_losses.seed(losses);
    m_corruptions.seed(corruptions);
    std::seed_seq jitters = {seed, stream, 1U}, reorderings = {seed, stream, 2U}, duplications = {seed, stream, 3U};
    m_jitters.seed(jitters);
    m_reorderings.seed(reorderings);
    m_duplications.seed(duplications);
    m_profileLosses.seed(profileLosses);
}

// Whether the next packet is lost; as many numbers are drawn for every packet, so that its fate depends on its index
// alone.
bool Impairment::Lost() {
    const Loss& loss = m_direction.loss;
    const double transition = Draw(m_losses);
    const double fate = Draw(m_losses);
    m_bad = m_bad ? transition >= loss.badToGood : transition < loss.goodToBad;
    return m_lossCap.Admit(fate < (m_bad ? loss.lossInBad : std::max(loss.rate, loss.lossInGood)));
}

bool Impairment::DoCorrupt(ns3::Ptr<ns3::Packet> packet) {
    if (m_receiving) {
        return false;
    }
    if (m_direction.udpCross && UdpCrossSource::IsOne(*packet)) {
        m_counters->udpCrossDelivered += !m_now->dark;
        return true;
    }
    const bool subject = m_subject.Of(*packet, kPppHeader) == Kind::Subject;
    if (!subject) {
        return m_now->dark;
    }
    const bool lost = Lost(), faded = Draw(m_profileLosses) < m_now->loss;
    const bool hit = m_corruptionCap.Admit(Draw(m_corruptions) < m_direction.corruption.rate);
    const double where = Draw(m_corruptions), what = Draw(m_corruptions);
    const ns3::Time jitter = DrawJitter(m_direction.jitter, m_jitters);
    const bool late = Draw(m_reorderings) < m_direction.reordering.rate;
    const bool twice = Draw(m_duplications) < m_direction.duplication;
    const auto drop = [](uint64_t& counter) {
        ++counter;
        return true;
    };
    ++m_index;
    if (m_now->dark) {
        return drop(m_counters->blackholeDrops);
    }
    if (m_direction.drops.contains(m_index)) {
        return drop(m_counters->listedDrops);
    }
    if (lost || faded || (hit && m_direction.corruption.lose)) {
        return drop(m_counters->lossDrops);
    }
    if (hit) {
        Corrupt(*packet, where, what);
    }
    if (m_direction.jitter.size.IsZero() && m_direction.reordering.rate == 0 && !twice) {
        return !Enters(*packet);
    }
    Disturb(*packet, jitter, late, twice);
    return true;
}

// Whether the NAT lets a packet in, if there is one.
bool Impairment::Enters(ns3::Packet& packet) {
    const bool enters = !m_nat || m_nat->Enter(packet);
    m_counters->natDrops += !enters;
    return enters;
}

// A packet cannot arrive before it has left: the lowest is what the link's delay allows.
ns3::Time DrawJitter(const Jitter& jitter, std::mt19937_64& random) {
    const double first = Draw(random), second = Draw(random);
    const double size = static_cast<double>(jitter.size.GetNanoSeconds());
    double delay = first * size;
    if (jitter.shape == "exponential") {
        delay = -std::log1p(-first) * size;
    } else if (jitter.shape == "normal") {  // Box and Muller 1958
        const double deviations = std::sqrt(-2 * std::log1p(-first)) * std::cos(2 * std::numbers::pi * second);
        delay = (kMostDeviations + std::clamp(deviations, -kMostDeviations, kMostDeviations)) * size;
    }
    return ns3::NanoSeconds(std::llround(delay));
}

void CountJitter(ns3::Time delay, Counters& counters) {
    ++counters.jittered;
    counters.jitterSum += delay.GetSeconds();
    counters.jitterMost = std::max(counters.jitterMost, delay.GetSeconds());
}

// Lets a packet that is there now arrive later, or twice.
void Impairment::Disturb(const ns3::Packet& packet, ns3::Time jitter, bool late, bool twice) {
    const Arrival arrival = {packet.Copy(), m_index, twice};
    const ns3::Time now = ns3::Simulator::Now();
    if (!m_direction.jitter.size.IsZero()) {
        CountJitter(jitter, *m_counters);
    }
    if (!late) {
        const ns3::Time due = now + jitter;
        m_last = m_direction.jitter.overtake ? due : std::max(m_last, due);
        ns3::Simulator::Schedule(m_last - now, &Impairment::Pass, this, arrival);
        return;
    }
    ++m_counters->reordered;
    const Reordering& reordering = m_direction.reordering;
    if (reordering.gap == 0) {
        ns3::Simulator::Schedule(jitter + reordering.delay, &Impairment::Deliver, this, arrival);
        return;
    }
    const auto latest = ns3::Simulator::Schedule(jitter + reordering.delay, &Impairment::Release, this, arrival.index);
    m_held.push_back({arrival, reordering.gap, latest});
}

// A packet arrives, and behind it those that waited for it.
void Impairment::Pass(Arrival arrival) {
    Deliver(arrival);
    std::list<Held> passed;
    for (auto held = m_held.begin(); held != m_held.end();) {
        const auto next = std::next(held);
        if (held->arrival.index < arrival.index && --held->gap == 0) {
            passed.splice(passed.end(), m_held, held);
        }
        held = next;
    }
    for (Held& held : passed) {
        held.latest.Cancel();
        Deliver(held.arrival);
    }
}

// A held packet has waited for long enough.
void Impairment::Release(uint64_t index) {
    const auto held =
        std::find_if(m_held.begin(), m_held.end(), [index](const Held& one) { return one.arrival.index == index; });
    const Arrival arrival = held->arrival;
    m_held.erase(held);
    Deliver(arrival);
}

void Impairment::Deliver(const Arrival& arrival) {
    if (!Enters(*arrival.packet)) {
        return;
    }
    m_counters->outOfOrder += arrival.index < m_latestIndex;
    m_latestIndex = std::max(m_latestIndex, arrival.index);
    const auto copy = arrival.twice ? arrival.packet->Copy() : nullptr;
    Receive(arrival.packet);
    if (copy) {
        ++m_counters->duplicated;
        Receive(copy);
    }
}

void Impairment::Receive(ns3::Ptr<ns3::Packet> packet) {
    m_receiving = true;
    m_device->Receive(packet);
    m_receiving = false;
}

// Gives one byte another value. UDP's checksum is made to fit, so that it is for QUIC to notice; TCP's, which is TCP's
// own way to notice, is not.
void Impairment::Corrupt(ns3::Packet& packet, double where, double what) {
    Editor editor(packet, kPppHeader);
    if (!editor.Usable() || editor.Payload().empty() || IsVersionNegotiation(editor.Payload())) {
        return;
    }
    const auto length = static_cast<uint32_t>(std::min<size_t>(editor.Payload().size(), kCorruptible));
    const auto index = static_cast<uint32_t>(where * length);
    const uint8_t before = editor.Payload()[index];
    auto value = static_cast<uint8_t>(before + 1 + static_cast<uint32_t>(what * 255));
    const bool fix = editor.Protocol() == kUdp;
    editor.SetPayload(index, value, fix);
    while (value == before || IsVersionNegotiation(editor.Payload())) {
        editor.SetPayload(index, ++value, fix);
    }
    editor.PutBack(packet);
    ++m_counters->corrupted;
}

}  // namespace quicsat

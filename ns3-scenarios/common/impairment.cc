#include "impairment.h"

#include <algorithm>

namespace quicsat {

namespace {

constexpr uint32_t kCorruptible = 50;  // first bytes of the payload, as in the QUIC Interop Runner
constexpr uint8_t kLongHeader = 0x80;
constexpr uint32_t kVersionEnd = 5;

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
                           Counters* counters, const bool* dark, Nat* nat) {
    m_direction = direction;
    m_subject = subject;
    m_counters = counters;
    m_dark = dark;
    m_nat = nat;
    m_lossCap = Cap(direction.loss.longestBurst);
    m_corruptionCap = Cap(direction.corruption.longestBurst);
    std::seed_seq losses = {seed, stream}, corruptions = {seed, stream + 2};
    m_losses.seed(losses);
    m_corruptions.seed(corruptions);
}

// Whether the next packet is lost; as many numbers are drawn for every packet, so that its fate depends on its index
// alone.
bool Impairment::Lost() {
    const Loss& loss = m_direction.loss;
    const double transition = Draw(m_losses);
    const double fate = Draw(m_losses);
    m_bad = m_bad ? transition >= loss.badToGood : transition < loss.goodToBad;
    return m_lossCap.Admit(m_bad || fate < loss.rate);
}

bool Impairment::DoCorrupt(ns3::Ptr<ns3::Packet> packet) {
    const bool subject = m_subject.Of(*packet, kPppHeader) == Kind::Subject;
    if (!subject) {
        return *m_dark;
    }
    const bool lost = Lost();
    const bool hit = m_corruptionCap.Admit(Draw(m_corruptions) < m_direction.corruption.rate);
    const double where = Draw(m_corruptions), what = Draw(m_corruptions);
    const auto drop = [](uint64_t& counter) {
        ++counter;
        return true;
    };
    ++m_index;
    if (*m_dark) {
        return drop(m_counters->blackholeDrops);
    }
    if (m_direction.drops.contains(m_index)) {
        return drop(m_counters->listedDrops);
    }
    if (lost || (hit && m_direction.corruption.lose)) {
        return drop(m_counters->lossDrops);
    }
    if (hit) {
        Corrupt(*packet, where, what);
    }
    return m_nat && !m_nat->Enter(*packet) && drop(m_counters->natDrops);
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

#include "lateness.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quicsat {

namespace {

constexpr int64_t kMicrosecond = 1'000;
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kInterval = 100 * kMillisecond;  // of a row
constexpr int64_t kLeastBound = 10 * kMillisecond;
constexpr int64_t kBoundShare = 20;  // a twentieth of the round trip

double InSeconds(int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e9;
}

// `write` for each of `all`, separated by commas.
template <typename All, typename Write>
void WriteAll(std::ostream& out, const All& all, const Write& write) {
    bool first = true;
    for (const auto& one : all) {
        out << (std::exchange(first, false) ? "" : ",");
        write(one);
    }
}

}  // namespace

int64_t LateBound(int64_t roundTripDelay) {
    return std::max(kLeastBound, roundTripDelay / kBoundShare);
}

void Lateness::Sent(bool forward, int64_t due, int64_t sent) {
    const int64_t late = std::max<int64_t>(sent - due, 0);
    Way& way = forward ? m_forward : m_back;
    ++way.frames;
    way.largest = std::max(way.largest, late);
    const double microseconds = static_cast<double>(std::max(late, kMicrosecond)) / kMicrosecond;
    const auto bin = static_cast<size_t>(kBinsPerDecade * std::log10(microseconds));
    ++way.bins[std::min(bin, way.bins.size() - 1)];
    const auto row = static_cast<size_t>(std::max<int64_t>(due, 0) / kInterval);
    if (way.rows.size() <= row) {
        way.rows.resize(row + 1);
    }
    ++way.rows[row].frames;
    way.rows[row].largest = std::max(way.rows[row].largest, late);
    if (late <= m_bound) {
        return;
    }
    ++way.late;
    // frames are due, and are sent, in the order of time: whatever overlaps a stall overlaps the last one
    if (m_stalls.empty() || due > m_stalls.back().end) {
        m_stalls.push_back({due, sent, 0, 0, 0});
    }
    Stall& stall = m_stalls.back();
    stall.end = sent;
    stall.largest = std::max(stall.largest, late);
    ++(forward ? stall.forward : stall.back);
}

int64_t Lateness::UpperEdge(size_t bin) {
    return static_cast<int64_t>(kMicrosecond * std::pow(10, static_cast<double>(bin + 1) / kBinsPerDecade));
}

// The upper edge of the bin that holds it: at most 12 % too much.
int64_t Lateness::Percentile(const Way& way, double share) {
    const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(way.frames)));
    uint64_t passed = 0;
    for (size_t bin = 0; bin < way.bins.size(); ++bin) {
        passed += way.bins[bin];
        if (passed && passed >= rank) {
            return std::min(UpperEdge(bin), way.largest);
        }
    }
    return 0;
}

void Lateness::WriteWay(std::ostream& out, const char* name, const Way& way) {
    out << ",\"" << name << "\":{\"frames\":" << way.frames << ",\"late\":" << way.late
        << ",\"max\":" << InSeconds(way.largest);
    for (const auto& [key, share] : {std::pair{"p50", 0.5}, std::pair{"p99", 0.99}, std::pair{"p999", 0.999}}) {
        out << ",\"" << key << "\":" << InSeconds(Percentile(way, share));
    }
    out << ",\"histogram\":[";
    bool first = true;
    for (size_t bin = 0; bin < way.bins.size(); ++bin) {
        if (way.bins[bin]) {
            out << (std::exchange(first, false) ? "[" : ",[") << InSeconds(UpperEdge(bin)) << "," << way.bins[bin]
                << "]";
        }
    }
    out << "],\"frames_per_interval\":[";
    WriteAll(out, way.rows, [&out](const Row& row) { out << row.frames; });
    out << "],\"max_per_interval\":[";
    WriteAll(out, way.rows, [&out](const Row& row) { out << InSeconds(row.largest); });
    out << "]}";
}

void Lateness::Write(std::ostream& out, int64_t started) const {
    out << "{\"bound\":" << InSeconds(m_bound) << ",\"interval\":" << InSeconds(kInterval);
    WriteWay(out, "forward", m_forward);
    WriteWay(out, "return", m_back);
    out << ",\"stalls\":[";
    WriteAll(out, m_stalls, [&out, started](const Stall& stall) {
        out << "[" << InSeconds(started + stall.begin) << "," << InSeconds(started + stall.end) << "," << stall.forward
            << "," << stall.back << "," << InSeconds(stall.largest) << "]";
    });
    out << "]}";
}

}  // namespace quicsat

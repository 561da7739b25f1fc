#include "profile.h"

#include "ns3/simulator.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

using namespace ns3;

namespace quicsat {

namespace {

constexpr size_t kMostSteps = 100'000;
constexpr size_t kMostReported = 20'000;
constexpr double kLongest = 3600e9;  // nanoseconds, of a profile and of a delay
constexpr double kHighestRate = 1e12;
constexpr double kNanoseconds = 1e9;

// A column of a line: a number from 0 to `highest`, or nothing for "-".
std::optional<double> ReadColumn(std::istringstream& line, double highest) {
    std::string word;
    line >> word;
    if (word == "-") {
        return {};
    }
    double value = 0;
    const char* last = word.data() + word.size();
    const auto [end, error] = std::from_chars(word.data(), last, value);
    if (error != std::errc() || end != last || !(value >= 0 && value <= highest)) {
        throw std::invalid_argument("numbers that are not too large, or -, instead of \"" + word + "\"");
    }
    return value;
}

}  // namespace

std::vector<Step> ReadSteps(const std::string& path) {
    std::ifstream file(path);
    std::vector<Step> steps;
    for (std::string text; std::getline(file, text);) {
        std::istringstream line(text);
        const auto time = ReadColumn(line, kLongest), rate = ReadColumn(line, kHighestRate);
        const auto delay = ReadColumn(line, kLongest), loss = ReadColumn(line, 1);
        if (!time || !(line >> std::ws).eof()) {
            throw std::invalid_argument("lines of a time, a rate, a delay and a loss");
        }
        Step step = {std::llround(*time)};
        if (rate) {
            step.rate = DataRate(static_cast<uint64_t>(std::llround(*rate)));
        }
        if (delay) {
            step.delay = NanoSeconds(std::llround(*delay));
        }
        step.loss = loss;
        steps.push_back(step);
        if (steps.size() > kMostSteps) {
            throw std::invalid_argument("at most 100000 lines");
        }
    }
    if (steps.empty()) {
        throw std::invalid_argument("a file with at least one line");
    }
    return steps;
}

std::string FaultOf(const Profile& profile) {
    if (!profile) {
        return profile.period || profile.start.IsStrictlyPositive() ? "has a period or a start, but no file" : "";
    }
    if (profile.steps.front().time != 0) {
        return "does not begin at time 0";
    }
    for (size_t index = 1; index < profile.steps.size(); ++index) {
        if (profile.steps[index].time <= profile.steps[index - 1].time) {
            return "has times that do not increase";
        }
    }
    if (profile.period && profile.period->GetNanoSeconds() <= profile.steps.back().time) {
        return "has a period that is over before its last step";
    }
    return profile.period && profile.start >= *profile.period ? "has a start after its period" : "";
}

Player::Player(const Profile& profile, std::function<void(const Step&)> apply)
    : m_profile(profile), m_apply(std::move(apply)) {
    const int64_t start = profile.start.GetNanoSeconds();
    while (m_index + 1 < profile.steps.size() && profile.steps[m_index + 1].time <= start) {
        ++m_index;
    }
    m_apply(profile.steps[m_index]);
}

void Player::Begin() {
    if (m_begun) {
        return;
    }
    m_begun = Simulator::Now().GetNanoSeconds();
    m_origin = *m_begun - m_profile.start.GetNanoSeconds();
    m_applied.emplace_back(*m_begun, m_index);
    ScheduleNext();
}

void Player::ScheduleNext() {
    if (++m_index == m_profile.steps.size()) {
        if (!m_profile.period) {
            return;
        }
        m_index = 0;
        ++m_turn;
    }
    const int64_t period = m_profile.period ? m_profile.period->GetNanoSeconds() : 0;
    const int64_t time = m_origin + static_cast<int64_t>(m_turn) * period + m_profile.steps[m_index].time;
    Simulator::Schedule(NanoSeconds(time) - Simulator::Now(), &Player::Apply, this);
}

void Player::Apply() {
    m_apply(m_profile.steps[m_index]);
    ++m_count;
    if (m_applied.size() < kMostReported) {
        m_applied.emplace_back(Simulator::Now().GetNanoSeconds(), m_index);
    }
    ScheduleNext();
}

void Player::Write(std::ostream& out, int64_t started) const {
    const auto write = [&out](const auto& value, double one) {
        if (value) {
            out << "," << one;
        } else {
            out << ",null";
        }
    };
    out << "{\"began\":";
    if (m_begun) {
        out << static_cast<double>(started + *m_begun) / kNanoseconds;
    } else {
        out << "null";
    }
    out << ",\"changes\":" << m_count << ",\"steps\":[";
    bool first = true;
    for (const auto& [time, index] : m_applied) {
        const Step& step = m_profile.steps[index];
        out << (std::exchange(first, false) ? "[" : ",[") << static_cast<double>(started + time) / kNanoseconds;
        write(step.rate, step.rate ? static_cast<double>(step.rate->GetBitRate()) : 0);
        write(step.delay, step.delay ? step.delay->GetSeconds() : 0);
        write(step.loss, step.loss.value_or(0));
        out << "]";
    }
    out << "]}";
}

}  // namespace quicsat

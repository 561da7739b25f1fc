#include "options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace quicsat {

namespace {

using Units = std::map<std::string, double>;

constexpr double kLongestDelay = 3600e9;  // nanoseconds
constexpr double kHighestRate = 1e12;
constexpr double kLongestQueue = 1e6;
constexpr double kMostBytes = 4e9;

// The number at the beginning of `text`, in the unit at its end.
double ReadNumber(const std::string& text, const Units& units, const std::string& expected) {
    double value = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    const auto unit = units.find(std::string(end, last));
    if (error != std::errc() || unit == units.end() || !std::isfinite(value)) {
        throw std::invalid_argument(expected);
    }
    return value * unit->second;
}

double Within(double value, double lowest, double highest, const std::string& expected) {
    if (value < lowest || value > highest) {
        throw std::invalid_argument(expected);
    }
    return value;
}

double ReadWhole(const std::string& text, double highest, const std::string& expected) {
    const double value = Within(ReadNumber(text, {{"", 1}}, expected), 1, highest, expected);
    if (value != std::floor(value)) {
        throw std::invalid_argument(expected);
    }
    return value;
}

}  // namespace

ns3::Time ReadDelay(const std::string& text) {
    const std::string expected = "a delay like 300ms (units s, ms, us, ns; at most an hour)";
    const Units units = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    return ns3::NanoSeconds(std::llround(Within(ReadNumber(text, units, expected), 0, kLongestDelay, expected)));
}

ns3::Time ReadPeriod(const std::string& text) {
    const ns3::Time period = ReadDelay(text);
    if (period < ns3::MilliSeconds(1)) {
        throw std::invalid_argument("a time of at least 1ms");
    }
    return period;
}

ns3::DataRate ReadRate(const std::string& text) {
    const std::string expected = "a rate like 20Mbps (units bps, kbps, Mbps, Gbps; more than 0)";
    const Units units = {{"bps", 1}, {"kbps", 1e3}, {"Kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9},
                         {"b/s", 1}, {"kb/s", 1e3}, {"Kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}};
    const double rate = Within(ReadNumber(text, units, expected), 1, kHighestRate, expected);
    return ns3::DataRate(static_cast<uint64_t>(std::llround(rate)));
}

uint32_t ReadCount(const std::string& text) {
    return static_cast<uint32_t>(ReadWhole(text, kLongestQueue, "a number of packets, 1 to 1000000"));
}

ns3::QueueSize ReadLimit(const std::string& text) {
    const std::string expected = "a number of packets or bytes, like 100p or 64000B";
    const bool packets = text.ends_with('p');
    if (!packets && !text.ends_with('B')) {
        throw std::invalid_argument(expected);
    }
    const double value = ReadWhole(text.substr(0, text.size() - 1), packets ? kLongestQueue : kMostBytes, expected);
    return {packets ? ns3::QueueSizeUnit::PACKETS : ns3::QueueSizeUnit::BYTES, static_cast<uint32_t>(value)};
}

double ReadPositive(const std::string& text) {
    const std::string expected = "a number above 0";
    const double value = Within(ReadNumber(text, {{"", 1}}, expected), 0, kMostBytes, expected);
    if (value == 0) {
        throw std::invalid_argument(expected);
    }
    return value;
}

uint32_t ReadPacketSize(const std::string& text) {
    const std::string expected = "the bytes of an IP packet with a UDP header, 28 to 1500";
    return static_cast<uint32_t>(Within(ReadWhole(text, 1500, expected), 28, 1500, expected));
}

uint16_t ReadPort(const std::string& text) {
    return static_cast<uint16_t>(ReadWhole(text, UINT16_MAX, "a port, 1 to 65535"));
}

uint32_t ReadSeed(const std::string& text) {
    return static_cast<uint32_t>(ReadWhole(text, UINT32_MAX, "a whole number, 1 to 4294967295"));
}

double ReadPercent(const std::string& text) {
    const std::string expected = "a loss in per cent, 0 to 100";
    return Within(ReadNumber(text, {{"", 1}}, expected), 0, 100, expected) / 100;
}

double ReadProbability(const std::string& text) {
    const std::string expected = "a probability, 0 to 1";
    return Within(ReadNumber(text, {{"", 1}}, expected), 0, 1, expected);
}

std::set<uint64_t> ReadIndices(const std::string& text) {
    const std::string expected = "numbers of packets, from 1, like 1,3,4";
    std::set<uint64_t> indices;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(',', begin), text.size());
        indices.insert(static_cast<uint64_t>(ReadWhole(text.substr(begin, end - begin), kLongestQueue, expected)));
        begin = end + 1;
    }
    return indices;
}

std::string ReadWord(const std::string& text, const std::vector<std::string>& allowed) {
    std::string expected;
    for (const std::string& word : allowed) {
        if (word == text) {
            return text;
        }
        expected += (expected.empty() ? "" : " or ") + word;
    }
    throw std::invalid_argument(expected);
}

void Options::Add(const std::string& name, const std::string& help, Setter set) {
    m_options[name] = {help, std::move(set)};
}

void Options::AddNeeded(const std::string& name, const std::string& help, Setter set) {
    m_options[name] = {help, std::move(set), true};
}

void Options::AddFlag(const std::string& name, const std::string& help, std::function<void()> set) {
    m_options[name] = {help, [set = std::move(set)](const std::string&) { set(); }, false, true};
}

void Options::Parse(int argc, char** argv) {
    for (int index = 1; index < argc; ++index) {
        Take(argv[index]);
    }
    const std::vector<std::string> misspelt = m_faults;  // one of them may be what seems to be missing
    for (const auto& [name, option] : m_options) {
        if (option.needed && !option.taken && misspelt.empty()) {
            m_faults.push_back("--" + name + "= is missing: " + option.help);
        }
    }
}

void Options::Take(const std::string& word) {
    if (word == "--help") {
        PrintHelp();
        std::exit(0);
    }
    const size_t equals = std::min(word.find('='), word.size());
    const auto find = [&] {
        return word.starts_with("--") ? m_options.find(word.substr(2, equals - 2)) : m_options.end();
    };
    auto option = find();
    while (option == m_options.end() && MakeRare()) {
        option = find();
    }
    if (option == m_options.end() || option->second.flag != (equals == word.size())) {
        m_faults.push_back(word + ": no such option (--help lists them)");
        return;
    }
    if (std::exchange(option->second.taken, true)) {
        m_faults.push_back(word + ": --" + option->first + " is given twice");
        return;
    }
    try {
        option->second.set(option->second.flag ? "" : word.substr(equals + 1));
    } catch (const std::invalid_argument& expected) {
        m_faults.push_back(word + ": expected " + expected.what());
    }
}

// Whether there were rare options that had not been added; they may have rarer ones.
bool Options::MakeRare() {
    const auto add = std::exchange(m_addRare, nullptr);
    if (add) {
        add();
    }
    return add != nullptr;
}

void Options::PrintHelp() {
    while (MakeRare()) {
    }
    for (const auto& [name, option] : m_options) {
        std::printf("--%s%s\t%s\n", name.c_str(), option.flag ? "" : "=", option.help.c_str());
    }
}

}  // namespace quicsat

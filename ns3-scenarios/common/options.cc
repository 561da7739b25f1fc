#include "options.h"

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

ns3::DataRate ReadRate(const std::string& text) {
    const std::string expected = "a rate like 20Mbps (units bps, kbps, Mbps, Gbps; more than 0)";
    const Units units = {{"bps", 1},   {"kbps", 1e3}, {"Kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9},
                         {"b/s", 1},   {"kb/s", 1e3}, {"Kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}};
    const double rate = Within(ReadNumber(text, units, expected), 1, kHighestRate, expected);
    return ns3::DataRate(static_cast<uint64_t>(std::llround(rate)));
}

uint32_t ReadCount(const std::string& text) {
    return static_cast<uint32_t>(ReadWhole(text, kLongestQueue, "a number of packets, 1 to 1000000"));
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

void Options::Add(const std::string& name, const std::string& help, Setter set) {
    m_options[name] = {help, std::move(set)};
}

void Options::Parse(int argc, char** argv) {
    for (int index = 1; index < argc; ++index) {
        Take(argv[index]);
    }
}

void Options::Take(const std::string& word) {
    if (word == "--help") {
        PrintHelp();
        std::exit(0);
    }
    const size_t equals = word.find('=');
    const bool formed = word.starts_with("--") && equals != std::string::npos;
    const auto option = formed ? m_options.find(word.substr(2, equals - 2)) : m_options.end();
    if (option == m_options.end()) {
        m_faults.push_back(word + ": no such option (they are written --name=value; --help lists them)");
        return;
    }
    if (std::exchange(option->second.taken, true)) {
        m_faults.push_back(word + ": --" + option->first + " is given twice");
        return;
    }
    try {
        option->second.set(word.substr(equals + 1));
    } catch (const std::invalid_argument& expected) {
        m_faults.push_back(word + ": expected " + expected.what());
    }
}

void Options::PrintHelp() const {
    for (const auto& [name, option] : m_options) {
        std::printf("--%s=\t%s\n", name.c_str(), option.help.c_str());
    }
}

}  // namespace quicsat

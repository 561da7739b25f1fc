// A scenario's command line: --name=value, read strictly, all faults told at once.
#pragma once

#include "ns3/data-rate.h"
#include "ns3/nstime.h"
#include "ns3/queue-size.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace quicsat {

// Readers of values; each throws std::invalid_argument with what it expects instead.
ns3::Time ReadDelay(const std::string& text);             // "300ms"
ns3::Time ReadPeriod(const std::string& text);            // the same, but not 0
ns3::DataRate ReadRate(const std::string& text);          // "20Mbps", "20Mb/s"
uint32_t ReadCount(const std::string& text);              // 1..1000000
ns3::QueueSize ReadLimit(const std::string& text);        // "100p", "64000B"
double ReadPositive(const std::string& text);             // more than 0
uint32_t ReadPacketSize(const std::string& text);         // 28..1500
uint16_t ReadPort(const std::string& text);               // 1..65535
uint32_t ReadSeed(const std::string& text);               // 1..4294967295
double ReadPercent(const std::string& text);              // 0..100 as a share
double ReadProbability(const std::string& text);          // 0..1
std::set<uint64_t> ReadIndices(const std::string& text);  // "1,3,4", from 1
std::string ReadWord(const std::string& text, const std::vector<std::string>& allowed);

// The options that a scenario knows.
class Options {
  public:
    using Setter = std::function<void(const std::string&)>;

    // `set` throws std::invalid_argument if it does not like the value.
    void Add(const std::string& name, const std::string& help, Setter set);
    // The same for one that must be given.
    void AddNeeded(const std::string& name, const std::string& help, Setter set);
    // An option without a value.
    void AddFlag(const std::string& name, const std::string& help, std::function<void()> set);
    // `add` adds options that few links have, once there is a word that is none of the others: all other links need the
    // same memory as without them, so that in virtual time not even the moments of its system calls change. It may add
    // a function for options that are rarer still.
    void AddRare(std::function<void()> add) { m_addRare = std::move(add); }
    // Reads the words; each fault adds one line to Faults(). --help prints the options and ends with status 0.
    void Parse(int argc, char** argv);
    const std::vector<std::string>& Faults() const { return m_faults; }

  private:
    void Take(const std::string& word);
    bool MakeRare();
    void PrintHelp();

    struct Option {
        std::string help;
        Setter set;
        bool needed = false;
        bool flag = false;
        bool taken = false;
    };
    std::map<std::string, Option> m_options;
    std::function<void()> m_addRare;
    std::vector<std::string> m_faults;
};

}  // namespace quicsat

// A trace file: pcap with nanoseconds, written by a thread of its own so that a slow disk does not hold up the link.
//
// Frames arrive at their simulated time, which is when the kernel got them, and depart in real time, which is ahead of
// the simulation when that is late. Departures wait here until the simulation has reached them, so that records are in
// the order of time.
#pragma once

#include "ns3/packet.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace quicsat {

class Trace {
  public:
    // Exits with status 4 if the file cannot be made.
    explicit Trace(const std::string& path);
    ~Trace();
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    // Starts the thread.
    void Start();
    // A frame that arrives now; `time` is that of the simulation, in nanoseconds since 1970.
    void Arrived(int64_t time, const ns3::Packet& packet);
    // A frame that departs at `time`, while the simulation has reached `now`.
    void Departed(int64_t time, int64_t now, const ns3::Packet& packet);
    // Waits until all is in the file; exits with status 4 if it could not be written.
    void Close();

  private:
    using Block = std::vector<uint8_t>;
    struct Departure {
        int64_t time;
        ns3::Ptr<ns3::Packet> packet;
    };
    void WriteDepartures(int64_t until);
    void Write(int64_t time, const ns3::Packet& packet);
    void HandOver();
    void Drain();

    std::string m_path;
    int m_file;
    Block m_block;
    std::deque<Departure> m_departures;
    int64_t m_latest = 0;  // time of the last record
    std::thread m_thread;
    std::mutex m_mutex;
    std::condition_variable m_change;
    std::deque<Block> m_waiting;
    bool m_closed = false;
    int m_error = 0;
};

}  // namespace quicsat

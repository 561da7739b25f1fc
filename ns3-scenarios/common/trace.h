// A trace file: pcap with nanoseconds, written by a thread of its own so that a slow disk does not hold up the link.
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
    // `time`: nanoseconds since 1970.
    void Write(int64_t time, const ns3::Packet& packet);
    // Waits until all is in the file; exits with status 4 if it could not be written.
    void Close();

  private:
    using Block = std::vector<uint8_t>;
    void HandOver();
    void Drain();

    std::string m_path;
    int m_file;
    Block m_block;
    std::thread m_thread;
    std::mutex m_mutex;
    std::condition_variable m_change;
    std::deque<Block> m_waiting;
    bool m_closed = false;
    int m_error = 0;
};

}  // namespace quicsat

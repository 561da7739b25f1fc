#include "trace.h"

#include "socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <unistd.h>
#include <utility>

namespace quicsat {

namespace {

constexpr size_t kBlock = 256 << 10;                   // bytes
constexpr size_t kWaitingBlocks = 2048;                // half a GiB; beyond that the link has to wait for the disk
constexpr Reservation kWriting = {0.01, 100'000'000};  // for the lock's sake: who has no priority could keep it long
constexpr int64_t kSecond = 1'000'000'000;
// that wait for the simulation; a link that is so late is not believed anyway
constexpr size_t kMostDepartures = 100'000;

// draft-ietf-opsawg-pcap, in the byte order of this machine
struct FileHeader {
    uint32_t magic = 0xa1b23c4d;  // nanoseconds
    uint16_t major = 2, minor = 4;
    uint32_t reserved[2] = {0, 0};
    uint32_t snapLength = 65535;
    uint32_t linkType = 1;  // Ethernet
};
struct RecordHeader {
    uint32_t seconds, nanoseconds, captured, original;
};

// Writes all of it; an error number, or 0.
int WriteAll(int file, const uint8_t* bytes, size_t size) {
    while (size > 0) {
        const ssize_t written = write(file, bytes, size);
        if (written < 0 && errno != EINTR) {
            return errno;
        }
        const auto done = static_cast<size_t>(written < 0 ? 0 : written);
        bytes += done;
        size -= done;
    }
    return 0;
}

}  // namespace

Trace::Trace(const std::string& path)
    : m_path(path), m_file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (m_file < 0) {
        Fail(4, path + ": " + std::strerror(errno));
    }
    const FileHeader header;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&header);
    m_block.reserve(kBlock);
    m_block.assign(bytes, bytes + sizeof header);
}

Trace::~Trace() {
    close(m_file);
}

void Trace::Start() {
    m_thread = std::thread(&Trace::Drain, this);
}

void Trace::Arrived(int64_t time, const ns3::Packet& packet) {
    WriteDepartures(time);
    Write(time, packet);
}

void Trace::Departed(int64_t time, int64_t now, const ns3::Packet& packet) {
    m_departures.push_back({time, packet.Copy()});
    WriteDepartures(now);
}

void Trace::WriteDepartures(int64_t until) {
    while (!m_departures.empty() && (m_departures.front().time <= until || m_departures.size() > kMostDepartures)) {
        Write(m_departures.front().time, *m_departures.front().packet);
        m_departures.pop_front();
    }
}

// Appends a record that is not older than the one before it.
void Trace::Write(int64_t time, const ns3::Packet& packet) {
    m_latest = time = std::max(time, m_latest);
    const uint32_t size = packet.GetSize();
    const RecordHeader header = {static_cast<uint32_t>(time / kSecond), static_cast<uint32_t>(time % kSecond), size,
                                 size};
    if (m_block.size() + sizeof header + size > kBlock) {
        HandOver();
    }
    const size_t begin = m_block.size();
    m_block.resize(begin + sizeof header + size);
    std::memcpy(&m_block[begin], &header, sizeof header);
    packet.CopyData(&m_block[begin + sizeof header], size);
}

void Trace::HandOver() {
    Block next;
    next.reserve(kBlock);
    std::swap(next, m_block);
    std::unique_lock lock(m_mutex);
    m_change.wait(lock, [this] { return m_waiting.size() < kWaitingBlocks; });
    m_waiting.push_back(std::move(next));
    m_change.notify_all();
}

void Trace::Drain() {
    TakeRealtimePriority(kWriting);
    std::unique_lock lock(m_mutex);
    while (true) {
        m_change.wait(lock, [this] { return m_closed || !m_waiting.empty(); });
        if (m_waiting.empty()) {
            return;
        }
        const Block block = std::move(m_waiting.front());
        m_waiting.pop_front();
        m_change.notify_all();
        lock.unlock();
        const int error = m_error ? m_error : WriteAll(m_file, block.data(), block.size());
        lock.lock();
        m_error = error;
    }
}

void Trace::Close() {
    WriteDepartures(std::numeric_limits<int64_t>::max());
    HandOver();
    {
        const std::lock_guard lock(m_mutex);
        m_closed = true;
    }
    m_change.notify_all();
    m_thread.join();
    if (m_error) {
        Fail(4, m_path + ": " + std::strerror(m_error));
    }
}

}  // namespace quicsat

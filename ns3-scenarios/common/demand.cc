#include "demand.h"

#include "ns3/simulator.h"

#include <algorithm>
#include <cmath>

using namespace ns3;

namespace quicsat {

namespace {

constexpr double kBitsPerByte = 8;

}  // namespace

void Terminal::Begin() {
    m_transmitter->SetRate(DataRate(0));
    Frame();
}

void Terminal::Frame() {
    ++m_frames;
    const double second = m_demand.frame.GetSeconds() / kBitsPerByte;
    const auto slots = [this, second](DataRate rate) {
        return static_cast<uint64_t>(static_cast<double>(rate.GetBitRate()) * second / m_demand.slot);
    };
    const uint64_t all = slots(m_rate), constant = std::min(slots(m_demand.constant), all);
    // what was requested already, and what this frame carries without a request
    const uint64_t covered = m_pending + constant * m_demand.slot, backlog = m_transmitter->Backlog();
    if (backlog > covered) {
        const uint64_t more = backlog - covered;
        m_pending += more;
        m_requested += more;
        ++m_requests;
        Simulator::Schedule(m_demand.delay, &Terminal::Grant, this, more);
    }
    const uint64_t wanted = (m_credit + m_demand.slot - 1) / m_demand.slot;
    const uint64_t demanded = std::min(wanted, all - constant);
    const uint64_t granted = std::min(m_credit, demanded * m_demand.slot);
    m_credit -= granted;
    m_pending -= granted;
    m_assigned += demanded * m_demand.slot;
    m_constant += constant * m_demand.slot;
    if (const uint64_t bytes = (constant + demanded) * m_demand.slot) {
        m_transmitter->SetRate(m_rate);
        // a nanosecond more, since the last packet may end with the last slot
        const Time length = m_rate.CalculateBytesTxTime(static_cast<uint32_t>(bytes)) + NanoSeconds(1);
        if (length < m_demand.frame) {
            Simulator::Schedule(length, &Transmitter::SetRate, m_transmitter, DataRate(0));
        }
    } else {
        m_transmitter->SetRate(DataRate(0));
    }
    Simulator::Schedule(m_demand.frame, &Terminal::Frame, this);
}

void Terminal::Write(std::ostream& out) const {
    out << "{\"frames\":" << m_frames << ",\"requests\":" << m_requests << ",\"requested\":" << m_requested
        << ",\"assigned\":" << m_assigned << ",\"constant\":" << m_constant << "}";
}

}  // namespace quicsat

#include "queue.h"

#include "packet.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/drop-tail-queue.h"
#include "ns3/fq-codel-queue-disc.h"
#include "ns3/object-factory.h"
#include "ns3/pie-queue-disc.h"
#include "ns3/queue-item.h"
#include "ns3/red-queue-disc.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <map>
#include <string>
#include <utility>

using namespace ns3;

namespace quicsat {

namespace {

constexpr uint32_t kLargestPacket = 1500 + kPppHeader;
const std::map<std::string, const char*> kTypes = {{"drop-tail", "ns3::FifoQueueDisc"},
                                                   {"codel", "ns3::CoDelQueueDisc"},
                                                   {"fq-codel", "ns3::FqCoDelQueueDisc"},
                                                   {"pie", "ns3::PieQueueDisc"},
                                                   {"red", "ns3::RedQueueDisc"}};

// A packet of the link in a discipline's queue. Its headers stay in the packet; of the link's, as many bytes count as a
// PPP header has.
class Item : public QueueDiscItem {
  public:
    Item(Ptr<Packet> packet, uint32_t linkHeader) : QueueDiscItem(packet, Address(), 0), m_linkHeader(linkHeader) {}
    uint32_t GetSize() const override { return GetPacket()->GetSize() + kPppHeader - m_linkHeader; }
    bool IsMarked() const { return m_marked; }
    void AddHeader() override {}
    bool Mark() override {
        const MarkResult result = MarkCongestion(*GetPacket(), m_linkHeader);
        m_marked = m_marked || result == MarkResult::Marked;
        return result != MarkResult::Refused;
    }
    uint32_t Hash(uint32_t perturbation) const override { return FlowHash(*GetPacket(), m_linkHeader, perturbation); }

  private:
    uint32_t m_linkHeader;
    bool m_marked = false;
};

// FQ-CoDel's times are texts in ns-3, and others can be.
void SetTime(ObjectFactory& factory, const std::string& name, Time value) {
    factory.Set(name, StringValue(std::to_string(value.GetNanoSeconds()) + "ns"));
}

// Values that RFC 8033 (section 4 and 5) and RFC 8289, 8290 recommend where ns-3 has others.
void SetDefaults(ObjectFactory& factory, const std::string& name) {
    if (name == "pie") {
        factory.Set("MaxBurstAllowance", TimeValue(MilliSeconds(150)));
        factory.Set("MeanPktSize", UintegerValue(kLargestPacket));
    } else if (name == "red") {
        factory.Set("MeanPktSize", UintegerValue(kLargestPacket));
    } else if (name == "codel") {
        factory.Set("MinBytes", UintegerValue(kLargestPacket));
    }
}

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(ManagedQueue);

TypeId ManagedQueue::GetTypeId() {
    static TypeId id = TypeId("quicsat::ManagedQueue").SetParent<Queue<Packet>>().AddConstructor<ManagedQueue>();
    return id;
}

void ManagedQueue::Configure(const Discipline& discipline, DataRate rate, int64_t stream, uint32_t linkHeader) {
    m_linkHeader = linkHeader;
    ObjectFactory factory(kTypes.at(discipline.name));
    factory.Set("MaxSize", QueueSizeValue(discipline.limit));
    SetDefaults(factory, discipline.name);
    const bool delays = discipline.name == "codel" || discipline.name == "fq-codel";
    if (discipline.name != "drop-tail") {
        factory.Set("UseEcn", BooleanValue(discipline.ecn));
    }
    if (discipline.target.IsStrictlyPositive()) {
        SetTime(factory, delays ? "Target" : "QueueDelayReference", discipline.target);
    }
    if (discipline.interval.IsStrictlyPositive()) {
        SetTime(factory, delays ? "Interval" : "Tupdate", discipline.interval);
    }
    if (discipline.name == "red") {
        factory.Set("MinTh", DoubleValue(discipline.redMinimum));
        factory.Set("MaxTh", DoubleValue(discipline.redMaximum));
        factory.Set("LInterm", DoubleValue(1 / discipline.redProbability));
        factory.Set("QW", DoubleValue(discipline.redWeight));
        factory.Set("LinkBandwidth", DataRateValue(rate));
    }
    m_discipline = factory.Create<QueueDisc>();
    if (const auto pie = DynamicCast<PieQueueDisc>(m_discipline)) {
        pie->AssignStreams(stream);
    } else if (const auto red = DynamicCast<RedQueueDisc>(m_discipline)) {
        red->AssignStreams(stream);
    } else if (const auto fair = DynamicCast<FqCoDelQueueDisc>(m_discipline)) {
        fair->SetQuantum(kLargestPacket);
    }
    m_discipline->TraceConnectWithoutContext(
        "Drop", Callback<void, Ptr<const QueueDiscItem>>(
                    [this](Ptr<const QueueDiscItem> item) { DropBeforeEnqueue(item->GetPacket()); }));
    m_discipline->Initialize();
    m_markAbove = discipline.markAbove;
}

bool ManagedQueue::Enqueue(Ptr<Packet> packet) {
    return m_discipline->Enqueue(Create<Item>(packet, m_linkHeader));
}

Ptr<Packet> ManagedQueue::Dequeue() {
    const auto item = StaticCast<Item>(m_discipline->Dequeue());
    if (!item) {
        return nullptr;
    }
    if (m_markAbove.IsStrictlyPositive() && Simulator::Now() - item->GetTimeStamp() > m_markAbove) {
        item->Mark();
    }
    if (item->IsMarked() && m_marked) {
        m_marked(*item->GetPacket());
    }
    return item->GetPacket();
}

Ptr<const Packet> ManagedQueue::Peek() const {
    const auto item = m_discipline->Peek();
    return item ? item->GetPacket() : nullptr;
}

Ptr<Queue<Packet>> MakeQueue(const Direction& direction, uint32_t linkHeader, uint32_t extra, int64_t stream,
                             ManagedQueue::Watcher marked) {
    if (direction.discipline.name.empty()) {
        const auto plain = CreateObject<DropTailQueue<Packet>>();
        plain->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, direction.queue + extra));
        return plain;
    }
    const auto managed = CreateObject<ManagedQueue>();
    managed->Configure(direction.discipline, direction.rate, stream, linkHeader);
    managed->WhenMarked(std::move(marked));
    return managed;
}

}  // namespace quicsat

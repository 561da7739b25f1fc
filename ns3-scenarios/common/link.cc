#include "link.h"

#include "socket.h"

#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace quicsat {

namespace {

void AddDelay(Options& options, Link& link) {
    options.Add("delay", "one-way delay of both directions, like 300ms",
                [&link](const std::string& text) { link.forward.delay = link.back.delay = ReadDelay(text); });
}

void AddDirection(Options& options, const std::string& name, const std::string& way, Direction& direction) {
    options.Add(name + "-delay", "one-way delay " + way + ", like 300ms",
                [&direction](const std::string& text) { direction.delay = ReadDelay(text); });
    options.Add(name + "-data-rate", "rate " + way + ", like 20Mbps",
                [&direction](const std::string& text) { direction.rate = ReadRate(text); });
    options.Add(name + "-queue", "packets that may wait " + way,
                [&direction](const std::string& text) { direction.queue = ReadCount(text); });
}

// `prefix`: of the names of the options.
void AddDiscipline(Options& options, const std::string& prefix, const std::string& side, Discipline& discipline) {
    options.Add(prefix + "queue-discipline-to-" + side,
                "drop-tail, codel, fq-codel, pie or red, instead of the plain queue",
                [&discipline](const std::string& text) {
                    discipline.name = ReadWord(text, {"drop-tail", "codel", "fq-codel", "pie", "red"});
                });
    options.Add(prefix + "queue-limit-to-" + side, "what it holds at most, like 100p or 64000B",
                [&discipline](const std::string& text) { discipline.limit = ReadLimit(text); });
    options.Add(prefix + "queue-target-to-" + side, "CoDel's and PIE's target delay, like 5ms",
                [&discipline](const std::string& text) { discipline.target = ReadDelay(text); });
    options.Add(prefix + "queue-interval-to-" + side, "CoDel's interval or PIE's update period, like 100ms",
                [&discipline](const std::string& text) { discipline.interval = ReadPeriod(text); });
    options.AddFlag(prefix + "queue-ecn-to-" + side, "the discipline marks what supports ECN instead of dropping it",
                    [&discipline] { discipline.ecn = true; });
    options.Add(prefix + "queue-mark-above-to-" + side, "marks what waited longer and supports ECN, like 1ms",
                [&discipline](const std::string& text) { discipline.markAbove = ReadDelay(text); });
    options.Add(prefix + "red-minimum-to-" + side, "average length from which RED drops, in the limit's unit",
                [&discipline](const std::string& text) { discipline.redMinimum = ReadPositive(text); });
    options.Add(prefix + "red-maximum-to-" + side, "average length at which RED drops with its probability",
                [&discipline](const std::string& text) { discipline.redMaximum = ReadPositive(text); });
    options.Add(prefix + "red-probability-to-" + side, "that probability, 0 to 1",
                [&discipline](const std::string& text) { discipline.redProbability = ReadProbability(text); });
    options.Add(prefix + "red-weight-to-" + side, "weight of the newest length in the average, 0 to 1",
                [&discipline](const std::string& text) { discipline.redWeight = ReadProbability(text); });
}

// `prefix`: as of AddDiscipline.
void AddLoss(Options& options, const std::string& prefix, const std::string& side, Loss& loss) {
    options.Add(prefix + "drop-rate-to-" + side, "independent loss, per cent",
                [&loss](const std::string& text) { loss.rate = ReadPercent(text); });
    options.Add(prefix + "drop-burst-to-" + side, "most packets lost in a row",
                [&loss](const std::string& text) { loss.longestBurst = ReadCount(text); });
    options.Add(prefix + "good-bad-prob-to-" + side, "Gilbert-Elliott loss: from good to bad, 0 to 1",
                [&loss](const std::string& text) { loss.goodToBad = ReadProbability(text); });
    options.Add(prefix + "bad-good-prob-to-" + side, "Gilbert-Elliott loss: from bad to good, 0 to 1",
                [&loss](const std::string& text) { loss.badToGood = ReadProbability(text); });
    options.Add(prefix + "loss-in-good-to-" + side, "Gilbert-Elliott loss: in the good state, 0 to 1",
                [&loss](const std::string& text) { loss.lossInGood = ReadProbability(text); });
    options.Add(prefix + "loss-in-bad-to-" + side, "Gilbert-Elliott loss: in the bad state, 0 to 1",
                [&loss](const std::string& text) { loss.lossInBad = ReadProbability(text); });
}

void CheckLoss(const Loss& loss, const std::string& prefix, const std::string& towards,
               std::vector<std::string>& faults) {
    if (loss.rate > 0 && loss.IsBursty()) {
        faults.push_back("--" + prefix + "drop-rate-to-" + towards + " and --" + prefix + "good-bad-prob-to-" +
                         towards + " exclude each other");
    }
}

using Expect = std::function<void(bool given, const std::string& what)>;

// `expect`: notes what the direction does not have.
void CheckQueue(const Direction& direction, const std::string& prefix, const std::string& towards, const Expect& expect,
                std::vector<std::string>& faults) {
    const Discipline& discipline = direction.discipline;
    expect(direction.queue > 0 || !discipline.name.empty(), "queue");
    expect(discipline.name.empty() || discipline.limit.GetValue() > 0, "queue limit");
    if (discipline.name == "fq-codel" && discipline.limit.GetUnit() == ns3::QueueSizeUnit::BYTES) {
        faults.push_back("--" + prefix + "queue-limit-to-" + towards + " of fq-codel must be in packets, like 100p");
    }
    if (discipline.name == "red") {
        expect(discipline.redMinimum > 0 && discipline.redMinimum < discipline.redMaximum,
               "red-minimum below red-maximum");
        expect(discipline.redProbability > 0 && discipline.redWeight > 0, "red-probability and red-weight above 0");
    }
}

void CheckClientSide(const ClientSide& link, std::vector<std::string>& faults) {
    const std::string prefix = "client-side-";
    CheckLoss(link.forward.loss, prefix, "client", faults);
    CheckLoss(link.back.loss, prefix, "server", faults);
    const auto does = [](const Direction& way) {
        const Loss& loss = way.loss;
        return way.delay || way.rate.GetBitRate() > 0 || loss.rate > 0 || loss.IsBursty() || loss.lossInGood > 0 ||
               way.jitter.size.IsStrictlyPositive();
    };
    if (!link && (does(link.forward) || does(link.back))) {
        faults.push_back("--" + prefix + "delay-to-client= or --" + prefix + "delay-to-server= is missing");
    }
    for (const auto& [towards, way] : {std::pair("client", &link.forward), std::pair("server", &link.back)}) {
        const auto expect = [&faults, towards = std::string(towards)](bool given, const std::string& what) {
            if (!given) {
                faults.push_back("the link at the client's side has no " + what + " to the " + towards);
            }
        };
        if (way->rate.GetBitRate() > 0) {
            CheckQueue(*way, prefix, towards, expect, faults);
        } else if (way->queue > 0 || !way->discipline.name.empty()) {
            expect(false, "rate");
        }
    }
}

void CheckDirection(const Direction& direction, const std::string& name, const std::string& towards,
                    std::vector<std::string>& faults) {
    const auto expect = [&](bool given, const std::string& what) {
        if (!given) {
            faults.push_back("the link has no " + what + " from " + name);
        }
    };
    expect(direction.delay.has_value(), "delay");
    expect(direction.rate.GetBitRate() > 0, "rate");
    CheckQueue(direction, "", towards, expect, faults);
    expect(direction.reordering.rate == 0 || direction.reordering.delay.IsStrictlyPositive(), "reorder delay");
    CheckLoss(direction.loss, "", towards, faults);
    const Demand& demand = direction.demand;
    if (!demand && (demand.delay.IsStrictlyPositive() || demand.slot > 1 || demand.constant.GetBitRate() > 0)) {
        faults.push_back("--demand-frame= is missing");
    }
    if (demand && direction.rate * demand.frame < 8.0 * demand.slot) {
        faults.push_back("--demand-slot is larger than what a frame carries");
    }
    if (!direction.udpCross && direction.udpCross.start.IsStrictlyPositive()) {
        faults.push_back("--udp-cross-rate-to-" + towards + "= is missing");
    }
    if (const std::string fault = FaultOf(direction.profile); !fault.empty()) {
        faults.push_back("--profile-to-" + towards + " " + fault);
    }
}

}  // namespace

void AddSymmetricOptions(Options& options, Link& link) {
    AddDelay(options, link);
    options.Add("bandwidth", "rate of both directions, like 20Mbps",
                [&link](const std::string& text) { link.forward.rate = link.back.rate = ReadRate(text); });
    options.Add("queue", "packets that may wait, in both directions",
                [&link](const std::string& text) { link.forward.queue = link.back.queue = ReadCount(text); });
}

void AddAsymmetricOptions(Options& options, Link& link) {
    AddDelay(options, link);
    AddDirection(options, "forward", "from server to client", link.forward);
    AddDirection(options, "return", "from client to server", link.back);
}

void AddGeometryOptions(Options& options, Link& link) {
    AddSymmetricOptions(options, link);
    AddAsymmetricOptions(options, link);
}

void AddLossOptions(Options& options, Link& link) {
    AddLoss(options, "", "client", link.forward.loss);
    AddLoss(options, "", "server", link.back.loss);
}

// `prefix`: as of AddDiscipline.
void AddJitter(Options& options, const std::string& prefix, const std::string& side, Jitter& jitter) {
    options.Add(prefix + "jitter-to-" + side, "size of an additional delay, like 5ms",
                [&jitter](const std::string& text) { jitter.size = ReadDelay(text); });
    options.Add(
        prefix + "jitter-shape-to-" + side, "uniform, exponential or normal",
        [&jitter](const std::string& text) { jitter.shape = ReadWord(text, {"uniform", "exponential", "normal"}); });
    options.AddFlag(prefix + "jitter-overtakes-to-" + side, "packets may overtake others",
                    [&jitter] { jitter.overtake = true; });
}

void AddDisturbanceOptions(Options& options, Link& link) {
    AddDiscipline(options, "", "client", link.forward.discipline);
    AddDiscipline(options, "", "server", link.back.discipline);
    const auto add = [&options](const std::string& side, Direction& direction) {
        AddJitter(options, "", side, direction.jitter);
        options.Add("reorder-rate-to-" + side, "packets that are held back, per cent",
                    [&direction](const std::string& text) { direction.reordering.rate = ReadPercent(text); });
        options.Add("reorder-delay-to-" + side, "for how long, like 20ms",
                    [&direction](const std::string& text) { direction.reordering.delay = ReadPeriod(text); });
        options.Add("reorder-gap-to-" + side, "or until so many later packets have arrived",
                    [&direction](const std::string& text) { direction.reordering.gap = ReadCount(text); });
        options.Add("duplicate-rate-to-" + side, "packets that arrive twice, per cent",
                    [&direction](const std::string& text) { direction.duplication = ReadPercent(text); });
    };
    add("client", link.forward);
    add("server", link.back);
}

void AddTimerOptions(Options& options, Link& link) {
    options.Add("timers-from", "start, or first-packet: of the client", [&link](const std::string& text) {
        link.timersFromFirstPacket = ReadWord(text, {"start", "first-packet"}) == "first-packet";
    });
}

void AddProfileOptions(Options& options, const std::string& side, Profile& profile) {
    options.Add("profile-to-" + side, "file with rate, delay and loss over time",
                [&profile](const std::string& text) { profile.steps = ReadSteps(text); });
    options.Add("profile-period-to-" + side, "time after which it begins again, like 300s",
                [&profile](const std::string& text) { profile.period = ReadPeriod(text); });
    options.Add("profile-start-to-" + side, "its time at the client's first packet, like 10s",
                [&profile](const std::string& text) { profile.start = ReadDelay(text); });
}

void AddUdpCrossOptions(Options& options, const std::string& side, UdpCross& traffic) {
    options.Add("udp-cross-rate-to-" + side, "rate of UDP packets of others, like 5Mbps",
                [&traffic](const std::string& text) { traffic.rate = ReadRate(text); });
    options.Add("udp-cross-size-to-" + side, "bytes of each of their IP packets, 28 to 1500",
                [&traffic](const std::string& text) { traffic.size = ReadPacketSize(text); });
    options.Add("udp-cross-start-to-" + side, "when they start, after the client's first packet, like 20s",
                [&traffic](const std::string& text) { traffic.start = ReadDelay(text); });
}

void AddDemandOptions(Options& options, Demand& demand) {
    options.Add("demand-frame", "capacity on demand from client to server: length of a frame, like 26.5ms",
                [&demand](const std::string& text) { demand.frame = ReadPeriod(text); });
    options.Add("demand-delay", "time from a request to the first frame that it can give, like 560ms",
                [&demand](const std::string& text) { demand.delay = ReadDelay(text); });
    options.Add("demand-slot", "bytes of a slot",
                [&demand](const std::string& text) { demand.slot = ReadCount(text); });
    options.Add("demand-constant-rate", "rate without requests, like 64kbps",
                [&demand](const std::string& text) { demand.constant = ReadRate(text); });
}

Subject ReadSubject(const std::string& text) {
    const std::string word = ReadWord(text, {"udp", "tcp", "both"});
    return {word != "tcp", word != "udp"};
}

void AddClientSideOptions(Options& options, const std::string& side, Direction& direction) {
    options.Add("client-side-delay-to-" + side, "one-way delay of a link between client and gateway, like 5ms",
                [&direction](const std::string& text) { direction.delay = ReadDelay(text); });
    AddLoss(options, "client-side-", side, direction.loss);
}

void AddClientSideRate(Options& options, const std::string& side, Direction& direction) {
    options.Add("client-side-data-rate-to-" + side, "its rate, like 50Mbps; without it, packets do not wait",
                [&direction](const std::string& text) { direction.rate = ReadRate(text); });
    options.Add("client-side-queue-to-" + side, "packets that may wait there",
                [&direction](const std::string& text) { direction.queue = ReadCount(text); });
    AddDiscipline(options, "client-side-", side, direction.discipline);
}

void AddCommonOptions(Options& options, Link& link) {
    AddClientSideOptions(options, "client", link.clientSide.forward);
    AddClientSideOptions(options, "server", link.clientSide.back);
    options.AddRare([&options, &link] {
        AddClientSideRate(options, "client", link.clientSide.forward);
        AddClientSideRate(options, "server", link.clientSide.back);
        options.AddRare([&options, &link] {
            AddJitter(options, "client-side-", "client", link.clientSide.forward.jitter);
            AddJitter(options, "client-side-", "server", link.clientSide.back.jitter);
            options.Add("client-side-protocol", "as protocol, if a tunnel ends between both links",
                        [&link](const std::string& text) { link.clientSide.subject = ReadSubject(text); });
        });
    });
    AddProfileOptions(options, "client", link.forward.profile);
    AddProfileOptions(options, "server", link.back.profile);
    AddDemandOptions(options, link.back.demand);
    AddUdpCrossOptions(options, "client", link.forward.udpCross);
    AddUdpCrossOptions(options, "server", link.back.udpCross);
    options.Add("protocol", "udp, tcp or both: what losses and counters are about", [&link](const std::string& text) {
        const Subject subject = ReadSubject(text);
        link.subject.udp = subject.udp;
        link.subject.tcp = subject.tcp;
    });
    options.Add("queue-mode", "exact, or paper: as long as QIR-SE's queue really was",
                [&link](const std::string& text) { link.queueMode = ReadWord(text, {"exact", "paper"}); });
    options.Add("seed", "of all that is random", [&link](const std::string& text) { link.seed = ReadSeed(text); });
}

void FailIfFaulty(const Link& link, const Options& options) {
    std::vector<std::string> faults = options.Faults();
    if (faults.empty()) {  // else what is missing may just be what was misspelt
        CheckDirection(link.forward, "server to client", "client", faults);
        CheckDirection(link.back, "client to server", "server", faults);
        CheckClientSide(link.clientSide, faults);
    }
    std::string message;
    for (const std::string& fault : faults) {
        message += (message.empty() ? "" : "; ") + fault;
    }
    if (!faults.empty()) {
        Fail(2, link.scenario + ": " + message);
    }
}

}  // namespace quicsat

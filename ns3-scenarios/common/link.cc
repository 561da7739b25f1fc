#include "link.h"

#include "socket.h"

#include <stdexcept>
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

void CheckDirection(const Direction& direction, const std::string& name, const std::string& towards,
                    std::vector<std::string>& faults) {
    const auto expect = [&](bool given, const std::string& what) {
        if (!given) {
            faults.push_back("the link has no " + what + " from " + name);
        }
    };
    expect(direction.delay.has_value(), "delay");
    expect(direction.rate.GetBitRate() > 0, "rate");
    expect(direction.queue > 0, "queue");
    if (direction.loss.rate > 0 && direction.loss.IsBursty()) {
        faults.push_back("--drop-rate-to-" + towards + " and --good-bad-prob-to-" + towards + " exclude each other");
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
    const auto add = [&options](const std::string& side, Loss& loss) {
        options.Add("drop-rate-to-" + side, "independent loss, per cent",
                    [&loss](const std::string& text) { loss.rate = ReadPercent(text); });
        options.Add("drop-burst-to-" + side, "most packets lost in a row",
                    [&loss](const std::string& text) { loss.longestBurst = ReadCount(text); });
        options.Add("good-bad-prob-to-" + side, "Gilbert-Elliott loss: from good to bad, 0 to 1",
                    [&loss](const std::string& text) { loss.goodToBad = ReadProbability(text); });
        options.Add("bad-good-prob-to-" + side, "Gilbert-Elliott loss: from bad to good, 0 to 1",
                    [&loss](const std::string& text) { loss.badToGood = ReadProbability(text); });
    };
    add("client", link.forward.loss);
    add("server", link.back.loss);
}

void AddTimerOptions(Options& options, Link& link) {
    options.Add("timers-from", "start, or first-packet: of the client", [&link](const std::string& text) {
        link.timersFromFirstPacket = ReadWord(text, {"start", "first-packet"}) == "first-packet";
    });
}

void AddCommonOptions(Options& options, Link& link) {
    options.Add("protocol", "udp or tcp: what losses and counters are about", [&link](const std::string& text) {
        link.subject.protocol = ReadWord(text, {"udp", "tcp"}) == "tcp" ? kTcp : kUdp;
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

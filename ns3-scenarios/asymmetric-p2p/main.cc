// A link whose directions differ in delay, rate and queue, as to a satellite.
#include "../common/emulator.h"

namespace {

void AddDirection(quicsat::Options& options, const std::string& name, const std::string& way,
                  quicsat::Direction& direction) {
    options.Add(name + "-delay", "one-way delay " + way + ", like 300ms",
                [&direction](const std::string& text) { direction.delay = quicsat::ReadDelay(text); });
    options.Add(name + "-data-rate", "rate " + way + ", like 20Mbps",
                [&direction](const std::string& text) { direction.rate = quicsat::ReadRate(text); });
    options.Add(name + "-queue", "packets that may wait " + way,
                [&direction](const std::string& text) { direction.queue = quicsat::ReadCount(text); });
}

}  // namespace

int main(int argc, char** argv) {
    quicsat::Link link = {"asymmetric-p2p", 100};
    quicsat::Options options;
    options.Add("delay", "one-way delay of both directions, like 300ms", [&link](const std::string& text) {
        link.forward.delay = link.back.delay = quicsat::ReadDelay(text);
    });
    AddDirection(options, "forward", "from server to client", link.forward);
    AddDirection(options, "return", "from client to server", link.back);
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

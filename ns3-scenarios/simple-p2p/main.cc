// A symmetric link: one delay, rate and queue for both directions.
#include "../common/emulator.h"

int main(int argc, char** argv) {
    quicsat::Link link = {"simple-p2p", 1};
    quicsat::Options options;
    options.Add("delay", "one-way delay, like 15ms", [&link](const std::string& text) {
        link.forward.delay = link.back.delay = quicsat::ReadDelay(text);
    });
    options.Add("bandwidth", "rate, like 20Mbps", [&link](const std::string& text) {
        link.forward.rate = link.back.rate = quicsat::ReadRate(text);
    });
    options.Add("queue", "packets that may wait", [&link](const std::string& text) {
        link.forward.queue = link.back.queue = quicsat::ReadCount(text);
    });
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

// A link that corrupts packets.
#include "../common/emulator.h"

int main(int argc, char** argv) {
    quicsat::Link link = {"corrupt-rate"};
    quicsat::Options options;
    quicsat::AddGeometryOptions(options, link);
    quicsat::AddLossOptions(options, link);
    const auto add = [&options](const std::string& side, quicsat::Corruption& corruption) {
        options.Add("rate_to_" + side, "independent corruption, per cent",
                    [&corruption](const std::string& text) { corruption.rate = quicsat::ReadPercent(text); });
        options.Add("burst_to_" + side, "most packets corrupted in a row",
                    [&corruption](const std::string& text) { corruption.longestBurst = quicsat::ReadCount(text); });
        options.Add("mode-to-" + side, "byte: one has another value; loss: the packet is lost",
                    [&corruption](const std::string& text) {
                        corruption.lose = quicsat::ReadWord(text, {"byte", "loss"}) == "loss";
                    });
    };
    add("client", link.forward.corruption);
    add("server", link.back.corruption);
    quicsat::AddDisturbanceOptions(options, link);
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

// A link that loses packets independently, under the options of the QUIC Interop Runner.
#include "../common/emulator.h"

int main(int argc, char** argv) {
    quicsat::Link link = {"drop-rate"};
    quicsat::Options options;
    quicsat::AddGeometryOptions(options, link);
    const auto add = [&options](const std::string& side, quicsat::Loss& loss) {
        options.Add("rate_to_" + side, "independent loss, per cent",
                    [&loss](const std::string& text) { loss.rate = quicsat::ReadPercent(text); });
        options.Add("burst_to_" + side, "most packets lost in a row",
                    [&loss](const std::string& text) { loss.longestBurst = quicsat::ReadCount(text); });
    };
    add("client", link.forward.loss);
    add("server", link.back.loss);
    quicsat::AddDisturbanceOptions(options, link);
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

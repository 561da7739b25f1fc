// A link that a TCP flow of others shares.
#include "../common/emulator.h"

int main(int argc, char** argv) {
    quicsat::Link link = {"tcp-cross-traffic"};
    quicsat::Options options;
    quicsat::AddGeometryOptions(options, link);
    quicsat::AddLossOptions(options, link);
    link.subject.crossPort = 5001;
    options.Add("cross-port", "TCP port by which that flow is known",
                [&link](const std::string& text) { link.subject.crossPort = quicsat::ReadPort(text); });
    quicsat::AddDisturbanceOptions(options, link);
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

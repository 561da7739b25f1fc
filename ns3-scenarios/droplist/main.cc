// A link that drops exactly the packets that it is told to.
#include "../common/emulator.h"

int main(int argc, char** argv) {
    quicsat::Link link = {"droplist"};
    quicsat::Options options;
    quicsat::AddGeometryOptions(options, link);
    quicsat::AddLossOptions(options, link);
    options.Add("drops_to_client", "packets to drop, like 1,3,4",
                [&link](const std::string& text) { link.forward.drops = quicsat::ReadIndices(text); });
    options.Add("drops_to_server", "packets to drop, like 1,3,4",
                [&link](const std::string& text) { link.back.drops = quicsat::ReadIndices(text); });
    quicsat::AddDisturbanceOptions(options, link);
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

// A link whose directions differ in delay, rate and queue, as to a satellite.
#include "../common/emulator.h"

int main(int argc, char** argv) {
    quicsat::Link link = {"asymmetric-p2p", 100};
    quicsat::Options options;
    quicsat::AddAsymmetricOptions(options, link);
    quicsat::AddLossOptions(options, link);
    quicsat::AddDisturbanceOptions(options, link);
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

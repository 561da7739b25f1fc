// A symmetric link: one delay, rate and queue for both directions.
#include "../common/emulator.h"

int main(int argc, char** argv) {
    quicsat::Link link = {"simple-p2p"};
    quicsat::Options options;
    quicsat::AddSymmetricOptions(options, link);
    quicsat::AddLossOptions(options, link);
    quicsat::AddDisturbanceOptions(options, link);
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

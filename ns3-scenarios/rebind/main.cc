// A link behind a NAT that forgets its mappings from time to time, in front of the client.
#include "../common/emulator.h"

int main(int argc, char** argv) {
    quicsat::Link link = {"rebind"};
    quicsat::Options options;
    quicsat::AddGeometryOptions(options, link);
    quicsat::AddLossOptions(options, link);
    quicsat::Rebinding& rebinding = link.rebinding.emplace();
    options.AddNeeded("first-rebind", "time until all flows get other ports, like 1s",
                      [&rebinding](const std::string& text) { rebinding.first = quicsat::ReadDelay(text); });
    options.Add("rebind-freq", "time from then on until the next, like 5s",
                [&rebinding](const std::string& text) { rebinding.period = quicsat::ReadPeriod(text); });
    options.AddFlag("rebind-addr", "another address, too", [&rebinding] { rebinding.addresses = true; });
    quicsat::AddTimerOptions(options, link);
    quicsat::AddDisturbanceOptions(options, link);
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

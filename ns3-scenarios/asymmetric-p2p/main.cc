// A link whose directions differ in delay, rate and queue, as to a satellite.
#include "../common/emulator.h"

#include "ns3/command-line.h"
#include "ns3/data-rate.h"
#include "ns3/nstime.h"

int main(int argc, char** argv) {
    quicsat::Link link;
    link.scenario = "asymmetric-p2p";
    link.paperExtra = 100;
    ns3::CommandLine command;
    command.AddValue("delay", "one-way delay of both directions", [&link](const std::string& text) {
        link.forward.delay = link.back.delay = ns3::Time(text);
        return true;
    });
    command.AddValue("forward-delay", "server to client", link.forward.delay);
    command.AddValue("return-delay", "client to server", link.back.delay);
    command.AddValue("forward-data-rate", "server to client", link.forward.rate);
    command.AddValue("return-data-rate", "client to server", link.back.rate);
    command.AddValue("forward-queue", "packets that may wait, server to client", link.forward.queue);
    command.AddValue("return-queue", "packets that may wait, client to server", link.back.queue);
    quicsat::AddCommonOptions(command, link);
    command.Parse(argc, argv);
    return quicsat::Emulate(link);
}

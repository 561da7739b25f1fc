// A symmetric link: one delay, rate and queue for both directions.
#include "../common/emulator.h"

#include "ns3/command-line.h"
#include "ns3/data-rate.h"
#include "ns3/nstime.h"

int main(int argc, char** argv) {
    ns3::Time delay;
    ns3::DataRate bandwidth;
    uint32_t queue = 0;
    quicsat::Link link;
    link.scenario = "simple-p2p";
    link.paperExtra = 1;
    ns3::CommandLine command;
    command.AddValue("delay", "one-way delay", delay);
    command.AddValue("bandwidth", "rate", bandwidth);
    command.AddValue("queue", "packets that may wait", queue);
    quicsat::AddCommonOptions(command, link);
    command.Parse(argc, argv);
    link.forward.delay = link.back.delay = delay;
    link.forward.rate = link.back.rate = bandwidth;
    link.forward.queue = link.back.queue = queue;
    return quicsat::Emulate(link);
}

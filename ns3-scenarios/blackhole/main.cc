// A link over which nothing arrives from time to time.
#include "../common/emulator.h"

int main(int argc, char** argv) {
    quicsat::Link link = {"blackhole"};
    quicsat::Options options;
    quicsat::AddGeometryOptions(options, link);
    quicsat::AddLossOptions(options, link);
    quicsat::Blackhole& blackhole = link.blackhole.emplace();
    options.AddNeeded("on", "how long it works, like 5s",
                      [&blackhole](const std::string& text) { blackhole.on = quicsat::ReadDelay(text); });
    options.AddNeeded("off", "how long it does not, after that",
                      [&blackhole](const std::string& text) { blackhole.off = quicsat::ReadDelay(text); });
    options.Add("repeat", "how often",
                [&blackhole](const std::string& text) { blackhole.repeat = quicsat::ReadCount(text); });
    options.Add("direction", "both, toclient or toserver", [&blackhole](const std::string& text) {
        const std::string direction = quicsat::ReadWord(text, {"both", "toclient", "toserver"});
        blackhole.toClient = direction != "toserver";
        blackhole.toServer = direction != "toclient";
    });
    quicsat::AddTimerOptions(options, link);
    quicsat::AddDisturbanceOptions(options, link);
    quicsat::AddCommonOptions(options, link);
    options.Parse(argc, argv);
    return quicsat::Emulate(link, options);
}

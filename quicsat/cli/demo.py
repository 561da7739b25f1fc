"""``./run.py demo``: prepares the machine, and measures three implementations over three links."""

from dataclasses import replace

from quicsat.cli import commands, console, setup
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program
from quicsat.model.clock import Clock

CAMPAIGNS = (
    "-s quic-go aioquic -c quic-go aioquic -t terrestrial sat --repetitions 1",
    "-s picoquic:bbr -c picoquic -t satloss --repetitions 1",
)
GROUP = "Measure", 6
SUMMARY = "Prepare this machine, and measure three implementations in a few minutes."
DESCRIPTION = (
    "Prepare this machine as `./run.py setup` does, pull or build the images of three implementations, and measure "
    "quic-go and aioquic over a terrestrial and a satellite link, and picoquic with BBR over a satellite link that "
    "loses packets. The results go to the folder results. If the Docker engine runs without root access, the demo uses "
    "virtual time."
)
EXAMPLES = ("demo   # as root",)


Options = CommandOptions


def run(_options: Options, program: Program) -> int:
    """Prepare the machine, and run the campaigns, the second even if runs of the first failed."""
    setup.prepare()
    clock = _clock()
    statuses = []
    for line in CAMPAIGNS:
        words = (*line.split(), *(("--clock", clock) if clock != Clock.REAL else ()))
        command = commands.load("run")
        options = commands.parser_of("run").parse_args(words, command.Options())
        statuses.append(command.run(options, replace(program, words=(program.words[0], *words))))
        if statuses[-1] not in (ExitStatus.SUCCESS, ExitStatus.FAILURE):
            break
    return max(statuses)


def _clock() -> Clock:
    from quicsat.docker.ssh_tunnel import connected

    with connected(shared.daemon(), "demo") as daemon:
        if not daemon.rootless:
            return Clock.REAL
    console.message("The engine runs without root access, so the demo uses virtual time.")
    return Clock.VIRTUAL

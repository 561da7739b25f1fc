"""Measures what members of a pair in virtual time cost: time and CPU time of campaigns of one member and of many.

``python -m bench.members SERVER/CLIENT...`` runs campaigns over a link, as many runs at a time as the CPUs allow, and
prints a row per pair. CPU time is that of quicsat and of the containers that the daemon starts meanwhile, in user and
kernel mode. Nothing else may start any.
"""
# ruff: noqa: T201 - a script

import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from prettytable import PrettyTable

from bench.script import ROOT, options_parser, run
from quicsat.docker.resource_use import GROUPS
from quicsat.model.errors import MachineError
from quicsat.results.store import load

BAR = 15
"""How many runs of one member may cost as much as ``--members``."""
PARENTS = ("cpuacct/docker", "docker", "system.slice")
"""Control groups in which daemons put their containers: version 1, and version 2 without and with systemd."""
PAIRS = ("quic-go/quic-go", "picoquic/quic-go", "quiche/quiche")


@dataclass(frozen=True)
class Cost:
    """Of a campaign, seconds."""

    wall: float
    quicsat: float
    """CPU time of its processes."""
    containers: float
    """CPU time."""

    @property
    def cpu(self) -> float:
        """CPU time of all."""
        return self.quicsat + self.containers


def campaign(pair: str, link: str, members: int, place: Path) -> Cost:
    """Run a campaign with a check of its images, as by default, and look at what it used; raises MachineError."""
    server, client = pair.split("/")
    words = ["--clock", "virtual", "-s", server, "-c", client, "-t", link, "--repetitions", str(members)]
    words += ["--seed", "7", "-l", str(place)]
    parent = _parent()
    others = {each: _used(each) for each in parent.iterdir() if each.is_dir()}
    before, own, begin = _used(parent), _ended_children(), time.monotonic()
    ended = subprocess.run([sys.executable, "run.py", *words], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    if ended.returncode:
        raise MachineError(f"{pair}: the campaign ended with exit status {ended.returncode}.")
    wall, used = time.monotonic() - begin, _used(parent) - before
    used -= sum(_used(each) - earlier for each, earlier in others.items() if each.exists())
    return Cost(wall, _ended_children() - own, used)


def _ended_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _parent() -> Path:
    for parent in (GROUPS / name for name in PARENTS):
        if parent.is_dir():
            return parent
    raise MachineError(f"no control group of containers: {', '.join(PARENTS)}")


def _used(group: Path) -> float:
    """CPU time of a control group and of those in it so far, seconds."""
    if (file := group / "cpuacct.usage").is_file():
        return int(file.read_text()) / 1e9
    rows = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(rows["usage_usec"]) / 1e6


def phases(place: Path) -> Counter[str]:
    """Seconds per phase of all runs of a campaign."""
    total: Counter[str] = Counter()
    for result in load(place).result_set.results:
        total.update(result.evidence.phases)
    return total


def main() -> int:
    """Measure each pair; the exit status says whether the bar is reached."""
    parser = options_parser(__doc__, {"--members": 20, "--singles": 3})
    parser.add_argument("pairs", nargs="*", default=PAIRS, metavar="SERVER/CLIENT")
    parser.add_argument("-t", "--test", default="sat", help="default: sat")
    options = parser.parse_args()
    header = ("time", "quicsat", "containers", "CPU time")
    table = PrettyTable(["pair", *(f"{name}, 1" for name in header), *(f"{name}, {options.members}" for name in header),
                         "ratio, time", "ratio, CPU time"])  # fmt: skip
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="members-") as folder:
        for number, pair in enumerate(options.pairs):
            places = [Path(folder, f"{number}-{each}") for each in range(options.singles + 1)]
            ones = [campaign(pair, options.test, 1, place) for place in places[1:]]
            all_members = campaign(pair, options.test, options.members, places[0])
            one = Cost(*(median(getattr(each, name) for each in ones) for name in ("wall", "quicsat", "containers")))
            ratios = all_members.wall / one.wall, all_members.cpu / one.cpu
            worst = max(worst, *ratios)
            values = [
                value for each in (one, all_members) for value in (each.wall, each.quicsat, each.containers, each.cpu)
            ]
            table.add_row([pair, *(f"{value:.1f}" for value in (*values, *ratios))])
            longest = ", ".join(f"{name} {seconds:.1f}" for name, seconds in phases(places[0]).most_common())
            print(f"{pair}: seconds per phase of all {options.members}: {longest}", flush=True)
    print(table)
    print(f"ratio of at most {BAR}: {'reached' if worst <= BAR else 'NOT reached'}")
    return int(worst > BAR)


if __name__ == "__main__":
    run(main)

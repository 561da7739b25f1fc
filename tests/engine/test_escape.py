"""A hostile endpoint tries to get out of its testbed, and captures tell what came of it: nothing leaves.

Every attempt is seen to have been made: its frames pass where they must, inside the testbed. The captures outside are
seen to work: they see a frame that the test itself sends there.
"""

import re
import secrets
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from quicsat.docker.client import Daemon
from quicsat.links.container_session import ContainerTestbed
from quicsat.links.ns3_testbed import Ns3Backend, Ns3Testbed
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome, Verdict
from tests.captures import Capture, inside
from tests.engine.bench import Bench
from tests.engine.test_hostile import addresses_of_the_host

OUTSIDE, HOST_SIDE = "198.51.100.2", "198.51.100.1"
"""Of a network that exists on this machine alone (RFC 5737)."""
NAME_SERVER = "198.51.100.53"
PORT = 9
"""Discard (RFC 863)."""
EXPERIMENTAL = 0x88B5
"""An Ethernet type for local use (IEEE 802)."""
PATIENCE = 30.0
"""Seconds for all that an endpoint tries."""


@pytest.fixture
def outside() -> Iterator[Path]:
    """The network namespace of a machine beyond the host, to which the host has a route."""
    name, cable = f"quicsat-out-{secrets.token_hex(2)}", f"qs{secrets.token_hex(3)}"
    commands = [
        f"ip netns add {name}",
        f"ip link add {cable} type veth peer name eth0 netns {name}",
        f"ip addr add {HOST_SIDE}/24 dev {cable}",
        f"ip link set {cable} up",
        f"ip -n {name} addr add {OUTSIDE}/24 dev eth0",
        f"ip -n {name} addr add {NAME_SERVER}/24 dev eth0",
        f"ip -n {name} link set eth0 up",
    ]
    try:
        for command in commands:
            done = subprocess.run(command.split(), check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"NO NETWORK NAMESPACE, nothing was captured: {command}: {done.stderr.strip()}")
        yield Path("/run/netns", name)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def namespaces(daemon: Daemon, testbed: ContainerTestbed) -> dict[str, Path]:
    """Network namespace of each endpoint's side of a testbed; skips where the engine is not on this machine."""
    found = {}
    for role in Role:
        identity = testbed.network(role).removeprefix("container:")
        process = daemon.quick.inspect_container(identity)["State"]["Pid"]
        group = Path(f"/proc/{process}/cgroup")
        if not group.exists() or identity not in group.read_text():
            pytest.skip("THE ENGINE IS ON ANOTHER MACHINE, or in other namespaces: nothing was captured")
        found[str(role)] = Path(f"/proc/{process}/ns/net")
    return found


def send(namespace: Path, interface: str, mark: bytes) -> None:
    """A frame from a namespace to all who listen there, whatever addresses it has."""

    def act() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind((interface, EXPERIMENTAL))
            out.send(b"\xff" * 6 + b"\x02" + bytes(5) + EXPERIMENTAL.to_bytes(2, "big") + mark)

    inside(namespace, act)


def attempts(mark: str, targets: list[str]) -> str:
    """Shell: datagrams and connections to all targets, through every gateway that could be there, to every machine.

    A frame leaves for a gateway only if somebody answers for it, so that the broadcast address does.
    """
    lines = ["/setup.sh", "sysctl -qw net.ipv4.ip_forward=1 2>/dev/null"]
    for number, gateway in enumerate(("2", "3", "1", "254")):
        lines += [
            "net=$(ip -4 -o addr show dev eth0 | sed 's/.*inet \\([0-9.]*\\)\\.[0-9]*\\/.*/\\1/')",
            f"ip neigh replace $net.{gateway} lladdr ff:ff:ff:ff:ff:ff dev eth0 nud permanent",
            f"ip route replace default via $net.{gateway} dev eth0 onlink",
            *(f"echo {mark} >/dev/udp/{target}/{PORT}" for target in targets),
            *(f"(echo {mark} >/dev/tcp/{target}/{PORT}) & sleep 0.05; kill $!" for target in targets[: number + 1]),
        ]
    lines += [
        f"ip addr add {HOST_SIDE}/24 dev eth0",  # as if it were the host
        *(f"ip neigh replace {one} lladdr ff:ff:ff:ff:ff:ff dev eth0 nud permanent" for one in (OUTSIDE, NAME_SERVER)),
        f"echo {mark} >/dev/udp/{OUTSIDE}/{PORT}",
        f"echo nameserver {NAME_SERVER} >/etc/resolv.conf",
        f"timeout 2 getent hosts {mark.lower()}.example",
        "ip -6 route replace default via fe80::1 dev eth0 onlink",
        "ip -6 neigh replace fe80::1 lladdr ff:ff:ff:ff:ff:ff dev eth0 nud permanent",
        f"echo {mark} >/dev/udp/2001:db8::2/{PORT}",
        "echo ALL TRIED",
        "exit 1",
    ]
    return "; ".join(lines)


@contextmanager
def captures(places: Mapping[str, Path]) -> Iterator[dict[str, Capture]]:
    """A capture in each namespace."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(Capture(path)) for name, path in places.items()}


@pytest.mark.parametrize("role", list(Role))
def test_nothing_leaves_the_testbed(bench: Bench, outside: Path, image_ids: Mapping[str, str], role: Role) -> None:
    """Neither to the host, nor to a network beyond it, nor to the neighbouring testbed."""
    targets = [OUTSIDE, NAME_SERVER, *addresses_of_the_host()]
    assert isinstance(bench.testbed, Ns3Testbed)
    with Ns3Backend(bench.daemon, image_ids["simulator"]).open() as neighbour:
        own = namespaces(bench.daemon, bench.testbed)
        beyond = {"host": Path("/proc/self/ns/net"), "outside": outside}
        beyond |= {f"neighbour's {name}": path for name, path in namespaces(bench.daemon, neighbour).items()}
        neighbour.reset()  # until its first run its interfaces are down, and nothing could arrive
        mark, control = (f"QS{secrets.token_hex(8)}" for _ in range(2))
        with captures(own | beyond) as seen:
            commands = attempts(mark, targets)
            client, server = (commands, "") if role is Role.CLIENT else ("", commands)
            bench.run(client, server, patience=PATIENCE)
            assert "ALL TRIED" in bench.output
            for name in (*(f"neighbour's {each}" for each in Role), "outside"):
                send(beyond[name], "eth0", control.encode())
        for name in beyond:
            assert seen[name].saw(control.encode()) >= 1, f"the capture at {name} is blind"
            assert seen[name].saw(mark.encode()) == seen[name].saw(mark.lower().encode()) == 0, name
        assert seen[role].saw(mark.encode()) >= 4 * len(targets)  # it did try
        assert seen[role].saw(mark.lower().encode()) >= 1  # DNS too
    assert bench.run()[0] == Verdict(Outcome.SUCCEEDED)


def told(bench: Bench) -> list[tuple[str, str]]:
    """Who said what, line by line, without the time."""
    lines = (line.split(" | ", 1) for line in bench.output.splitlines())
    return [(who.strip(), rest.partition(" ")[2]) for who, rest in lines]


INTRUSIONS = {
    "a file system of its own": "mount -t tmpfs none /mnt",
    "kernel settings made writable": "mount -o remount,rw /proc/sys",
    "a directory in two places": "mount --bind / /mnt",
    "disks": "mknod /tmp/sda b 8 0 && head -c 1 /tmp/sda || mknod /tmp/vda b 254 0 && head -c 1 /tmp/vda",
    "groups of processes": "mount -t cgroup -o memory none /mnt",
    "a user namespace": "unshare --user --map-root-user --mount true",
    "other namespaces": "nsenter --target 1 --mount true",
    "settings of the kernel": "echo 1 >/proc/sys/kernel/sysrq",
    "the trigger of the kernel": "echo s >/proc/sysrq-trigger",
    "the socket of the daemon": "ls /var/run/docker.sock || ls /run/docker.sock",
    "the clock": "date -s @1",
    "the name of the machine": "hostname quicsat-was-here",
}
TOOLS = ("mount", "mknod", "unshare", "nsenter", "date", "hostname")


ENGINES_OWN = re.compile(r" \S*/(overlay2|containers|netns)/\S* ")
"""A mount that an engine of this machine makes for a container, perhaps for one of another job."""


def mounts() -> list[str]:
    """Mounts of this machine, without those that engines make for containers."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if not ENGINES_OWN.search(line)]


def test_what_belongs_to_the_host_stays_its_own(bench: Bench) -> None:
    """Mounts, devices, namespaces, settings: each attempt is refused, and says so."""
    before = mounts(), socket.gethostname()
    lines = [f"echo TOOLS $(command -v {' '.join(TOOLS)} | wc -l)"]
    lines += [
        f"if ({attempt}) >/dev/null 2>&1; then echo DONE: {what}; else echo REFUSED: {what}; fi"
        for what, attempt in INTRUSIONS.items()
    ]
    bench.run("; ".join([*lines, "exit 1"]), patience=PATIENCE)
    said = [words for _, words in told(bench)]
    assert said == [f"TOOLS {len(TOOLS)}", *(f"REFUSED: {what}" for what in INTRUSIONS)]
    assert (mounts(), socket.gethostname()) == before


WRITTEN = "grep -lx written /certs/* | wc -l"


def test_who_writes_to_its_certificates_writes_to_nobody_elses(bench: Bench) -> None:
    """Each endpoint of each run has its own: what was written is not there in the next one."""
    write = "for file in /certs/*; do echo written >$file; done"
    bench.run(f"{write}; echo FOUND $({WRITTEN}) of $(ls /certs | wc -l); exit 1", patience=PATIENCE)
    assert ("client", "FOUND 3 of 3") in told(bench)
    bench.run(f"echo FOUND $({WRITTEN}); exit 1", patience=PATIENCE)
    assert ("client", "FOUND 0") in told(bench)
    assert bench.run()[0] == Verdict(Outcome.SUCCEEDED)

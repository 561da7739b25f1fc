"""Two machines and a satellite link on one: what a real link is tested on.

Each host is a real Docker daemon in a network namespace of its own, with its own address, data root and identity.
Between them lie a carrier's NAT, the ns-3 simulator, and another NAT in front of the server; none of it touches the
network of the machine. The client's daemon is reached over ssh, the server's over TLS, from a namespace that can reach
nothing else.

    control --- ssh --- client --- nat === simulator === edge --- server --- TLS --- control

``python -m tests.laboratory`` opens one and says how to use it.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from quicsat.config import loader
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.images import build_recipes
from quicsat.images.pull_or_build import Images, Policy
from quicsat.links.simulator_arguments import scenario
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.units import MBPS, MS
from tests.certificates import certificates
from tests.dockerds import LaboratoryError, bring, call, dockerd, group_of, inside, running, specimen, wait_for
from tests.engine_lock import URL

ROOT = Path(__file__).resolve().parents[1]
SAT = EmulatedLink("asymmetric-p2p", Direction(300 * MS, 20 * MBPS, 25), Direction(300 * MS, 2 * MBPS, 25))
SERVER_ADDRESS = "198.51.100.2"
CONTROL = {"client": ("10.250.1.1", "10.250.1.2"), "server": ("10.250.2.1", "10.250.2.2")}
"""Addresses of the control namespace and of the host, by host."""
SSH_PORT, TLS_PORT = 2222, 2376
SIMULATOR = "simulator"
"""Folder of the simulator's files, below that of the laboratory."""
CASE = """\
name: {name}
abbreviation: LAB
description: {size} over the laboratory's link
extends: astra
link: {{client host: lab_client, server host: lab_server, provider: laboratory, tariff: none, modem: ns-3}}
file size: {size}
"""
NEEDED = ("ip", "iptables", "sshd", "ssh-keygen", "dockerd", "nsenter", "unshare")


@dataclass(frozen=True)
class Laboratory:
    """Two hosts, and how to reach and disturb them."""

    folder: Path
    hosts: Path
    """The hosts file; the client is ``lab_client``, the server ``lab_server``."""
    namespaces: Mapping[str, str]
    source: str
    """URL of the server's daemon, which has the images."""
    sockets: Mapping[str, str]
    """URL of each host's daemon for whoever is on this machine."""

    def command(self, *words: str | Path) -> list[str]:
        """``words`` in the control namespace."""
        return [*inside(self.namespaces["control"]), *map(str, words)]

    def environment(self) -> dict[str, str]:
        """For ``run.py`` in it."""
        return {**os.environ, "DOCKER_HOST": self.source}

    def ssh_connections(self) -> frozenset[str]:
        """Ends, here, of the connections of ssh to the client's host."""
        words = ("ss", "-Htn", "state", "established", "dport", "=", f":{SSH_PORT}")
        return frozenset(line.split()[2] for line in call(*self.command(*words)).splitlines())

    def reset_ssh(self) -> None:
        """End those connections as a network does that resets them, from the client's host."""
        words = ("ss", "-tnK", "state", "established", "sport", "=", f":{SSH_PORT}")
        call(*inside(self.namespaces["client"]), *words)


# ---- the parts ------------------------------------------------------------------------------


def _networks(stack: ExitStack) -> dict[str, str]:
    """The namespaces, joined."""
    spaces = {part: f"qs{os.getpid()}-{part}" for part in ("control", "client", "nat", "sim", "edge", "server")}
    for name in spaces.values():
        call("ip", "netns", "add", name)
        stack.callback(call, "ip", "netns", "del", name, check=False)
        call("ip", "-n", name, "link", "set", "lo", "up")
    cables = [
        ("control", "c-client", f"{CONTROL['client'][0]}/30", "client", "control", f"{CONTROL['client'][1]}/30"),
        ("control", "c-server", f"{CONTROL['server'][0]}/30", "server", "control", f"{CONTROL['server'][1]}/30"),
        ("client", "up0", "10.77.0.2/24", "nat", "in0", "10.77.0.1/24"),
        ("nat", "out0", "193.167.0.100/24", "sim", "eth0", "193.167.0.2/24"),
        ("edge", "out0", "193.167.100.100/24", "sim", "eth1", "193.167.100.2/24"),
        ("server", "up0", f"{SERVER_ADDRESS}/24", "edge", "in0", "198.51.100.1/24"),
    ]
    for left, device, address, right, other, opposite in cables:
        call("ip", "link", "add", device, "netns", spaces[left], "type", "veth", "peer", other, "netns", spaces[right])
        for part, name, own in ((left, device, address), (right, other, opposite)):
            call("ip", "-n", spaces[part], "addr", "add", own, "dev", name)
            call("ip", "-n", spaces[part], "link", "set", name, "up")
    for device, ipv6 in (("eth0", "fd00:cafe:cafe:0::2/64"), ("eth1", "fd00:cafe:cafe:100::2/64")):
        call("ip", "-n", spaces["sim"], "addr", "add", ipv6, "dev", device, "nodad")  # the simulator looks for them
    for part, gateway in (("client", "10.77.0.1"), ("server", "198.51.100.1"), ("nat", "193.167.0.2"),
                          ("edge", "193.167.100.2")):  # fmt: skip
        call("ip", "-n", spaces[part], "route", "add", "default", "via", gateway)
    for part, forwards in (("nat", 1), ("edge", 1), ("sim", 0)):
        call(*inside(spaces[part]), "sh", "-c", f"echo {forwards} >/proc/sys/net/ipv4/ip_forward")
    rules = [
        ("nat", "PREROUTING", "-d", SERVER_ADDRESS, "-j", "DNAT", "--to-destination", "193.167.100.100"),
        ("nat", "POSTROUTING", "-o", "out0", "-p", "udp", "-j", "MASQUERADE", "--to-ports", "20000-59999", "--random"),
        ("nat", "POSTROUTING", "-o", "out0", "-j", "MASQUERADE"),
        ("edge", "PREROUTING", "-i", "out0", "-j", "DNAT", "--to-destination", SERVER_ADDRESS),
        ("edge", "POSTROUTING", "-o", "in0", "-j", "MASQUERADE"),
    ]
    for part, chain, *rule in rules:
        call(*inside(spaces[part]), "iptables", "-t", "nat", "-A", chain, *rule)
    return spaces


def unpack_own(source: Daemon, name: str, files: Path) -> str:
    """Fill a folder with the files of an image that is no endpoint; the cgroup of the containers there.

    Those of the laboratory are to have the same share of the CPUs.
    """
    [reference] = images_of(ROOT, name)
    image = DaemonImages(source).find(reference)
    if image is None:
        raise LaboratoryError(f"the image is not here: ./run.py images build {name}")
    files.mkdir()
    with specimen(source, image.id) as created:
        with subprocess.Popen(["tar", "-x", "-C", str(files)], stdin=subprocess.PIPE) as tar:
            for chunk in source.slow.export(created):
                tar.stdin.write(chunk)
        return group_of(source, created)


def of_image(files: Path, command: str) -> list[str]:
    """``command`` among the files of an image, with the devices of this machine."""
    for special in ("dev", "proc"):
        (files / special).mkdir(exist_ok=True)
    mounts = f"mount --bind /dev {files}/dev && mount -t proc proc {files}/proc"
    return ["unshare", "-m", "sh", "-c", f"{mounts} && exec chroot {files} {command}"]


@contextmanager
def _simulator(spaces: Mapping[str, str], folder: Path, link: EmulatedLink, seed: int) -> Iterator[None]:
    """The simulator between both NATs."""
    files = folder / SIMULATOR
    for part in ("nat", "edge"):  # ns-3 would pass unfinished checksums on
        call(*inside(spaces[part]), "chroot", files, "ethtool", "-K", "out0", "tx", "off")
    environment = {"PATH": os.environ["PATH"], "SCENARIO": scenario(link, seed), "WAITFORSERVER": ""}
    log = folder / "simulator.log"
    command = [*inside(spaces["sim"]), *of_image(files, "simulate")]
    with running(command, log, env=environment) as process:
        wait_for(lambda: '"running"' in log.read_text(errors="replace"), "the simulator", process, log)
        yield


@contextmanager
def _ssh(namespace: str, folder: Path) -> Iterator[Path]:
    """An sshd in front of the client's daemon; the configuration with which one logs in."""
    own = folder / "ssh"
    own.mkdir()
    for key in ("host", "user"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", own / key)
    (own / "authorized_keys").write_text((own / "user.pub").read_text())
    address = CONTROL["client"][1]
    (own / "known_hosts").write_text(f"[{address}]:{SSH_PORT} {(own / 'host.pub').read_text()}")
    (own / "sshd_config").write_text(
        f"Port {SSH_PORT}\nListenAddress {address}\nHostKey {own}/host\nAuthorizedKeysFile {own}/authorized_keys\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\nPermitRootLogin prohibit-password\n"
    )
    (own / "config").write_text(
        f"Host *\n  IdentityFile {own}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {own}/known_hosts\n"
        "  StrictHostKeyChecking yes\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    sshd = call("sh", "-c", "command -v sshd").strip()
    with running([*inside(namespace), sshd, "-D", "-e", "-f", str(own / "sshd_config")], own / "log") as process:
        wait_for(lambda: "listening" in (own / "log").read_text(), "sshd", process, own / "log")
        yield own / "config"


HOSTS = """\
lab_client:
  daemon: ssh://root@{ssh}:{ssh_port}{client_socket}
  ssh config: {ssh_config}
lab_server:
  daemon: tcp://{server}:{tls_port}
  tls: {{ca: {tls}/ca.pem, certificate: {tls}/client.pem, key: {tls}/client.key}}
  address: {address}
"""


@contextmanager
def laboratory(source: str, images: Sequence[str], link: EmulatedLink = SAT, seed: int = 1) -> Iterator[Laboratory]:
    """Raise it with ``images`` of the engine at ``source`` at the server's daemon; raises :class:`LaboratoryError`."""
    missing = [program for program in NEEDED if not call("sh", "-c", f"command -v {program}", check=False).strip()]
    if missing or os.geteuid():
        raise LaboratoryError(f"needs root and {', '.join(missing) or 'nothing else'}")
    engine = Daemon(source, "laboratory")
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="quicsat-lab-", ignore_cleanup_errors=True))
        )
        spaces = _networks(stack)
        group = unpack_own(engine, SIMULATOR, folder / SIMULATOR)
        stack.enter_context(_simulator(spaces, folder, link, seed))
        tls = certificates(folder / "tls", CONTROL["server"][1])
        options = ["-H", f"tcp://{CONTROL['server'][1]}:{TLS_PORT}", "--tlsverify", "--tlscacert", f"{tls}/ca.pem",
                   "--tlscert", f"{tls}/server.pem", "--tlskey", f"{tls}/server.key"]  # fmt: skip
        client = stack.enter_context(dockerd("client", spaces["client"], folder, group))
        server = stack.enter_context(dockerd("server", spaces["server"], folder, group, options))
        ssh_config = stack.enter_context(_ssh(spaces["client"], folder))
        hosts = folder / "hosts.yml"
        hosts.write_text(HOSTS.format(
            ssh=CONTROL["client"][1], ssh_port=SSH_PORT, client_socket=client.removeprefix("unix://"),
            ssh_config=ssh_config, server=CONTROL["server"][1], tls_port=TLS_PORT, tls=tls, address=SERVER_ADDRESS,
        ))  # fmt: skip
        bring(engine, Daemon(server, "laboratory"), images)
        yield Laboratory(folder, hosts, spaces, server, {"client": client, "server": server})


def images_of(root: Path, *names: str) -> list[str]:
    """References of images built here: endpoints, their base, and those that are no endpoints."""
    own = {name: build_recipes.find_recipe(name, folder) for name, folder in build_recipes.OWN_FOLDERS.items()}
    own["endpoint-base"] = build_recipes.find_base("ENDPOINT_BASE")
    expected = {
        **build_recipes.expected(),
        **{name: recipe.tag for name, recipe in own.items()},
        **{
            each.name: build_recipes.recipe_of(root, each).tag
            for each in loader.load_implementations(root / "implementations.json").values()
            if each.build_arguments
        },
        "base": build_recipes.BASE,
    }
    return [expected[name] for name in names]


def prepare(url: str, names: Sequence[str]) -> None:
    """Have the images of the link and of implementations at an engine: inside the laboratory no registry is reached."""
    source = Images(DaemonImages(Daemon(url, "laboratory")), ROOT, Policy.AUTO, print)
    source.ensure_own("simulator")
    for own in ("link-tools", "link-gateways"):
        source.ensure_own(own)
    known = loader.load_implementations(ROOT / "implementations.json")
    for name in dict.fromkeys(names):
        source.ensure(known[name])


def lab_case(name: str, size: str) -> str:
    """A test case over the laboratory's link, as YAML."""
    return CASE.format(name=name, size=size)


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["link-tools", "simulator", "quic-go", "picoquic"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with laboratory(URL, images_of(ROOT, *wanted)) as lab:
        told = {"command": lab.command(), "DOCKER_HOST": lab.source, "hosts": str(lab.hosts), "sockets": lab.sockets}
        sys.stdout.write(f"{json.dumps(told)}\n")
        sys.stdout.flush()
        signal.pause()

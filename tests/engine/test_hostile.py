"""Endpoints that misbehave: each ends in an outcome with a sentence, in time, and harms neither host nor next run."""

import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import pytest
from docker.errors import APIError

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.execution.retries import ATTEMPTS
from quicsat.links.ns3_testbed import Ns3Backend, Ns3Testbed
from quicsat.model.evidence import Deadline, Evidence
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.units import MIB
from tests.engine.bench import SHORT, Bench
from tests.waiting import until


def test_an_honest_pair_is_the_measure_of_all_others(bench: Bench) -> None:
    verdict, evidence, _ = bench.run()
    assert verdict == Verdict(Outcome.SUCCEEDED)
    assert evidence.simulator is not None


# ---- ends -----------------------------------------------------------------------------------

SEND = "/setup.sh; echo x >/dev/udp/193.167.100.100/443; "
DEAF = "trap '' TERM INT HUP; while :; do sleep 1; done"
EATER = "exec tail /dev/zero"
"""A command that ends in no other way than by the limit of memory."""
FILLER = f"fallocate -l 3G /big; {DEAF}"
"""A command that fills the disk; it would go on until its time is over."""
CLIENTS = {
    "exit 1": "client-failed",
    "exit 127": "unsupported",
    "bash -c 'kill -SEGV $$'; exit $?": "crashed",
    DEAF: "timeout",
    "/setup.sh; echo x >/dev/udp/193.167.100.100/443; exit 0": "file-missing",
    EATER: "out-of-memory",
    FILLER: "artefact-limit",
}
"""Commands of a client, and the code of its outcome."""
SERVERS = {
    "exit 1": "server-exited",
    "exit 127": "unsupported",
    "bash -c 'kill -SEGV $$'; exit $?": "crashed",
    DEAF: "server-not-ready",
    EATER: "out-of-memory",
    FILLER: "artefact-limit",
}
"""Commands of a server, and the code of its outcome."""
HARMS = (
    "ip addr flush dev eth0; ip addr add 193.167.0.77/24 dev eth0; ip link set eth0 mtu 700",
    "ip route add blackhole 193.167.100.0/24; ip rule add from all blackhole priority 5",
    "tc qdisc add dev eth0 root tbf rate 1kbit burst 1500 latency 1s; ip link set eth0 down",
    "ip link add dummy0 type dummy; ip addr add 193.167.100.100/32 dev dummy0; ip link set dummy0 up",
    "ip neigh replace 193.167.0.2 lladdr 02:00:00:00:00:01 dev eth0 nud permanent",
    "ip link set eth0 address 02:00:00:00:00:09; ip link set eth0 arp off; ethtool -K eth0 tx on gso on",
)
"""What an endpoint does to its network."""
BEYOND_REPAIR = ("ip link set eth0 name other", "ip link del eth0", "ip link add eth9 type dummy")
"""What it does so that its testbed cannot be used any longer."""
FLOOD = "exec yes $(printf 'x%.0s' {1..200})"
FORK_BOMB = "f() { f | f & }; f 2>/dev/null; while :; do :; done"
SIDE_BY_SIDE = 2
"""Testbeds for runs that do not depend on each other."""
Found = tuple[Verdict, Evidence, float]
Outcomes = Mapping[Hashable, Future[Found]]


def harm_and_run(bench: Bench, harm: str) -> Found:
    """The run that follows one whose client does harm."""
    bench.run(f"({harm}) 2>&1; exit 1")
    return bench.run()


def harm_beyond_repair(bench: Bench, harm: str) -> Found:
    """The run in a new testbed after one whose client does harm, and another, in a testbed of their own."""
    backend = Ns3Backend(bench.daemon, bench.images["simulator"])
    folder = Path(tempfile.mkdtemp(dir=bench.folder))
    with backend.open() as first:
        spoilt = replace(bench, testbed=first, folder=folder)
        spoilt.run(f"{harm}; exit 1")
        assert spoilt.run()[0].outcome in (Outcome.ERROR, Outcome.SUCCEEDED)
    with backend.open() as second:
        return replace(spoilt, testbed=second).run()


def flood(bench: Bench) -> Found:
    """A run whose client says more than is kept."""
    found = bench.run(FLOOD, patience=SHORT)
    assert (bench.directory / "output.txt").stat().st_size < 8 * MIB
    return found


def eat(bench: Bench, client: str = "", server: str = "") -> Found:
    """A run of the eater; repeated if the engine does not tell that it was out of memory.

    containerd's shim asks the group of a container why it was killed, and tells nothing if the group has gone
    meanwhile, as happens on a busy machine.
    """
    for _ in range(ATTEMPTS):
        found = bench.run(client, server)
        if found[0].code is not ErrorCode.CRASHED:
            break
    return found


def jobs() -> dict[Hashable, Callable[[Bench], Found]]:
    """Runs that do not depend on each other, by what identifies them."""
    found: dict[Hashable, Callable[[Bench], Found]] = {}
    found |= {(Role.CLIENT, each): partial(Bench.run, client=each) for each in CLIENTS}
    found |= {(Role.SERVER, each): partial(Bench.run, server=each) for each in SERVERS}
    found |= {(Role.CLIENT, DEAF): partial(Bench.run, client=DEAF, patience=SHORT)}
    found |= {(Role.CLIENT, EATER): partial(eat, client=EATER), (Role.SERVER, EATER): partial(eat, server=EATER)}
    found |= {("harm", each): partial(harm_and_run, harm=each) for each in HARMS}
    found |= {("beyond repair", each): partial(harm_beyond_repair, harm=each) for each in BEYOND_REPAIR}
    found[FLOOD] = flood
    return found


@pytest.fixture(scope="module")
def outcomes(
    testbed: tuple[Daemon, Ns3Testbed], image_ids: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Outcomes:
    """Results of the jobs, which run on two testbeds at the same time: most of them only wait."""
    free: SimpleQueue[Bench] = SimpleQueue()
    daemons = [Daemon(testbed[0].url, f"{testbed[0].campaign}-{number}") for number in range(SIDE_BY_SIDE)]

    def on_a_free_testbed(job: Callable[[Bench], Found]) -> Found:
        bench = free.get()
        try:
            return job(bench)
        finally:
            free.put(bench)

    with ExitStack() as stack, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for daemon in daemons:
            side = stack.enter_context(Ns3Backend(daemon, image_ids["simulator"]).open())
            free.put(Bench(daemon, side, image_ids, tmp_path_factory.mktemp("side")))
        futures = {name: pool.submit(on_a_free_testbed, job) for name, job in jobs().items()}
        wait(futures.values())
    assert [list_containers(daemon, daemon.campaign) for daemon in daemons] == [()] * SIDE_BY_SIDE
    return futures


@pytest.mark.parametrize(("client", "code"), CLIENTS.items())
def test_clients(outcomes: Outcomes, client: str, code: str) -> None:
    verdict, evidence, _ = outcomes[Role.CLIENT, client].result()
    assert verdict.code == code
    assert evidence.server.killed


@pytest.mark.parametrize(("server", "code"), SERVERS.items())
def test_servers(outcomes: Outcomes, server: str, code: str) -> None:
    verdict, _, _ = outcomes[Role.SERVER, server].result()
    assert verdict.code == code


@pytest.mark.parametrize("role", [Role.CLIENT, Role.SERVER])
def test_what_fills_the_disk_is_ended_and_named(outcomes: Outcomes, role: Role) -> None:
    verdict, evidence, _ = outcomes[role, FILLER].result()
    assert (verdict.outcome, verdict.code) == (Outcome.FAILED, ErrorCode.ARTEFACT_LIMIT)
    assert verdict.reason.startswith(f"The {role} wrote 3")
    assert evidence.timed_out is not Deadline.TRANSFER, "a server that only writes does not become ready"


def test_a_flood_of_words_is_cut(outcomes: Outcomes) -> None:
    verdict, _, _ = outcomes[FLOOD].result()
    assert verdict.code == "timeout"


def test_a_fork_bomb_meets_the_limit_of_processes(bench: Bench) -> None:
    verdict, _, _ = bench.run(FORK_BOMB, patience=SHORT)
    assert verdict.outcome in (Outcome.FAILED, Outcome.TIMEOUT)


# ---- files ----------------------------------------------------------------------------------

TRAPS = """
cd /{0}; ln -s /etc/passwd link; ln -s / root; mkfifo pipe; mknod null c 1 3; mkdir -p a/b; ln -s ../../.. a/b/up
printf x > '..\\\\x'; printf y > $'new\\nline'; printf z > plain; ln plain hard; chmod 000 plain; truncate -s 40M sparse
"""


def test_traps_in_the_logs(bench: Bench) -> None:
    verdict, evidence, _ = bench.run(TRAPS.format("logs") + "exit 1")
    assert verdict.code == "client-failed"
    found = [path for path in (bench.directory / "client").rglob("*") if not path.is_dir()]
    assert all(path.is_file() and not path.is_symlink() for path in found)
    assert (bench.directory / "client/plain").read_text() == "z"
    assert all(os.access(path, os.R_OK) and path.stat().st_uid == os.getuid() for path in found)
    assert any("left out" in note for note in evidence.notes)


def test_traps_in_the_downloads(bench: Bench) -> None:
    verdict, evidence, _ = bench.run(TRAPS.format("downloads") + SEND + "exit 0", keep=True)
    assert verdict.code == "file-missing"
    assert not any(path.is_symlink() for path in bench.directory.rglob("*"))
    assert {file.name for file in evidence.downloaded} >= {"plain", "hard", "sparse"}


def clients(daemon: Daemon) -> list[str]:
    """Ids of the containers of clients that run."""
    found = daemon.quick.containers(filters={"name": f"quicsat-{daemon.campaign}-.*-client$"})
    return [each["Id"] for each in found if not any("holder" in name for name in each["Names"])]


def test_what_fills_the_disk_is_gone_with_its_container(bench: Bench) -> None:
    layers, size = Path(bench.daemon.info["DockerRootDir"]) / "overlay2", 100 * MIB
    if not layers.is_dir():
        pytest.skip("THE ENGINE IS ON ANOTHER MACHINE or has another driver: its disk was not looked at")
    name = f"filler-{secrets.token_hex(8)}"
    words = f"head -c {size} /dev/urandom >/{name}; wc -c </{name}; until [ -e /seen ]; do sleep 0.1; done; exit 1"

    def on_disk() -> bool:
        return any(layers.glob(f"*/diff/{name}"))

    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(bench.run, words)
        seen = False
        while not run.done():  # on a busy machine it is made several times
            time.sleep(0.1)
            if on_disk():
                seen = True
                for client in clients(bench.daemon):
                    with suppress(APIError):  # it has ended
                        bench.daemon.slow.put_archive(client, "/", pack({"seen": b""}))
        verdict, _, _ = run.result()
    assert seen, verdict
    assert verdict.code == "client-failed"
    assert str(size) in bench.output.split()
    assert not on_disk()
    assert bench.run()[0] == Verdict(Outcome.SUCCEEDED)


# ---- the host and the other side ------------------------------------------------------------


def addresses_of_the_host() -> list[str]:
    """Of all interfaces, those of the engine's bridges too."""
    found = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    fib = Path("/proc/net/fib_trie").read_text().split()
    found |= {fib[index - 2] for index, word in enumerate(fib) if word == "host"} & {
        w for w in fib if w.count(".") == 3
    }
    return sorted(str(address) for address in found if not str(address).startswith("127."))


def test_the_host_cannot_be_reached(bench: Bench) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        hosts = ["127.0.0.1", "172.17.0.1", "193.167.0.1", *addresses_of_the_host()]
        probes = [f"timeout 1 bash -c '</dev/tcp/{host}/{port}' && echo REACHED {host}" for host in hosts]
        routes = ["ip route show default | grep . && echo REACHED default route"]
        routes += ["ip -6 route show default | grep . && echo REACHED default route"]
        for prepare in ("", "/setup.sh; ", "ip route add default via 193.167.0.2; "):
            tried = " ".join(f"({probe}) &" for probe in (probes if prepare else probes + routes))
            bench.run(f"{prepare}{tried} wait; echo ALL TRIED; exit 1")
            assert "REACHED" not in bench.output
            assert "ALL TRIED" in bench.output
        listener.settimeout(0.1)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_the_other_side_is_reached_through_the_simulator_alone(bench: Bench) -> None:
    bench.run("/setup.sh; ls /sys/class/net | xargs echo INTERFACES; ip route get 193.167.100.100; exit 1")
    assert "193.167.100.100 via 193.167.0.2 dev eth0" in bench.output
    interfaces = bench.output.split("INTERFACES ")[1].splitlines()[0].split()
    assert {name for name in interfaces if name.startswith("eth")} == {"eth0"}
    # the simulator's kernel forwards nothing: what ns-3 does not carry does not arrive
    _, evidence, _ = bench.run("/setup.sh; timeout 2 bash -c '</dev/tcp/193.167.100.100/22' && echo REACHED; exit 1")
    assert "REACHED" not in bench.output
    assert evidence.simulator is not None


# ---- what the next run finds ----------------------------------------------------------------


@pytest.mark.parametrize("harm", HARMS)
def test_the_next_run_is_unharmed(outcomes: Outcomes, harm: str) -> None:
    verdict, evidence, _ = outcomes["harm", harm].result()
    assert verdict == Verdict(Outcome.SUCCEEDED), (verdict, evidence.notes)


@pytest.mark.parametrize("harm", BEYOND_REPAIR)
def test_a_testbed_beyond_repair_is_our_fault_and_replaced(outcomes: Outcomes, harm: str) -> None:
    verdict, _, _ = outcomes["beyond repair", harm].result()
    assert verdict == Verdict(Outcome.SUCCEEDED)


def test_a_testbed_that_ends_during_a_run_is_our_fault(
    lock: None, daemon: Daemon, image_ids: Mapping[str, str], tmp_path: Path
) -> None:
    """As when the daemon is started anew: its containers end, and nobody is to blame for it."""
    with Ns3Backend(daemon, image_ids["simulator"]).open() as testbed:
        mine = Bench(daemon, testbed, image_ids, tmp_path)
        holder = testbed.network(Role.SERVER).removeprefix("container:")

        def end_all_once_the_client_runs() -> None:
            until(lambda: clients(daemon))
            time.sleep(0.5)
            for each in daemon.quick.containers(filters={"label": f"quicsat.campaign={daemon.campaign}"}):
                daemon.quick.kill(each["Id"], "SIGTERM" if each["Id"] != holder else "SIGKILL")

        thread = threading.Thread(target=end_all_once_the_client_runs)
        thread.start()
        verdict, _, _ = mine.run(client="trap 'exit 1' TERM; sleep 20 & wait")
        thread.join()
    assert verdict.outcome is Outcome.ERROR
    assert verdict.code is ErrorCode.DAEMON_FAULT
    assert "as when the Docker daemon restarts" in verdict.reason

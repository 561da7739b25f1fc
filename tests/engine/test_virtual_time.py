"""Virtual time at the real engine: one seed gives the same packets, endpoints end as in real time, nothing is left."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bench.fairness import BAR, compare
from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.docker.daemon_images import DaemonImages
from quicsat.links.virtual_machine import START, VirtualBackend, VirtualTestbed
from quicsat.model.clock import Clock
from quicsat.model.evidence import Deadline
from quicsat.model.implementation import Protocol, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.perturbation import NOMINAL, USUAL, perturbation_of
from quicsat.model.results import RunResult
from quicsat.model.units import KIB, MIB
from quicsat.results.store import load
from tests.engine.bench import Bench
from tests.engine.conftest import need
from tests.engine.crashes import Crash, image, play
from tests.engine.test_command import UNCHECKED, call, finished, measure, nothing_is_left, start_when_free
from tests.engine.test_gateways import window

MINE = """\
name: lossy
abbreviation: LO
description: 500 KiB over a link that loses 1 %
link: {scenario: simple-p2p, delay: 10 ms, rate: 20 Mbit/s, queue: 100, loss: 1 %}
file size: 500 KiB
repetitions: 1
timeout: 30 s
---
name: beside
abbreviation: BE
description: 1 MiB beside a TCP flow
link: {scenario: tcp-cross-traffic, delay: 10 ms, rate: 20 Mbit/s, queue: 25, cross traffic: {}}
file size: 1 MiB
repetitions: 1
timeout: 60 s
"""
TOGETHER = """\
name: together
abbreviation: TG
description: 500 KiB over a link with all elements, and proxies
link:
  scenario: asymmetric-p2p
  forward profile: {leo: {rate: [5 Mbit/s, 10 Mbit/s], handover: 500 ms, outage: 50 ms, length: 5 s}, start: random}
  return profile: {file: up.csv, loop: true}
  return access: {dama: {request delay: 50 ms, constant rate: 64 kbit/s}}
  queue: {discipline: fq-codel, limit: 100 packets, target: 2 ms, interval: 20 ms, ecn: true}
  loss: {good to bad: 0.01, bad to good: 0.5}
  jitter: {size: 3 ms, shape: exponential, overtake: true}
  reordering: {rate: 2 %, delay: 50 ms, gap: 2}
  duplication: 2 %
  udp cross traffic: {rate: 0.2 Mbit/s, start: 100 ms}
  pep: D
file size: 500 KiB
repetitions: 1
timeout: 60 s
"""
READY = "---\n".join(
    f"name: x{name}\nabbreviation: X{name.upper()}\nextends: {name}\nfile size: 100 KiB\nrepetitions: 1\n"
    for name in ("leo", "meo", "fade", "dama")
)
SESSIONS = """\
name: receive
abbreviation: RC
extends: transfer-unidirectional-receive
file sizes: [20 KiB, 1 KiB]
---
name: send
abbreviation: SD
extends: transfer-bidirectional-send
file sizes: [20 KiB, 1 KiB]
---
name: datagrams
abbreviation: DG
extends: transfer-datagram-receive
file sizes: [600 B, 800 B, 998 B]
"""
VIRTUAL = ("--clock", "virtual", "--seed", "7")
AGAIN = "quicsat/quic-go-again:test"
TRACES = ("trace_node_left.pcap", "trace_node_right.pcap")


@pytest.fixture
def mine(virtual_images: Mapping[str, str], tmp_path: Path) -> tuple[str, str]:
    """Both test cases as files."""
    for name, text in zip(("lossy", "beside"), MINE.split("---\n"), strict=True):
        (tmp_path / f"{name}.yaml").write_text(text)
    return str(tmp_path / "lossy.yaml"), str(tmp_path / "beside.yaml")


# ---- campaigns ------------------------------------------------------------------------------


def traces(directory: Path, result: RunResult) -> list[bytes]:
    return [(directory / result.key.path / "sim" / name).read_bytes() for name in TRACES]


def goodput(result: RunResult) -> float:
    assert result.verdict.outcome is Outcome.SUCCEEDED, result.verdict
    return result.measurement.values["goodput"]


def test_one_seed_gives_the_same_packets(mine: tuple[str, str], tmp_path: Path) -> None:
    """Alone, and with another pair beside it: byte for byte, so at the same times as well."""
    quick = ("-t", mine[0], "--skip-compliance-check", *VIRTUAL)
    [alone] = measure(tmp_path / "a", "-s", "quic-go", "-c", "quic-go", *quick, "--parallel", "1")
    both = measure(tmp_path / "b", "-s", "quic-go", "-c", "quic-go", "aioquic", *quick, "--parallel", "2")
    [again] = [each for each in both if each.client == "quic-go"]
    assert traces(tmp_path / "a", alone) == traces(tmp_path / "b", again)
    assert goodput(alone) == goodput(again) > 1e6
    assert alone.evidence.client == again.evidence.client
    assert alone.evidence.simulator == again.evidence.simulator
    [other] = [each for each in both if each.client == "aioquic"]
    assert goodput(other) > 1e6
    assert {each.evidence.clock for each in both} == {Clock.VIRTUAL}
    assert load(tmp_path / "b").result_set.manifest.clock is Clock.VIRTUAL


def test_the_id_of_an_image_changes_no_packet(
    daemon: Daemon, virtual_images: Mapping[str, str], mine: tuple[str, str], tmp_path: Path
) -> None:
    """Images that are built again from the same sources have other ids, and the same seed has the same packets."""
    quick = ("-s", "quic-go", "-c", "quic-go", "-t", mine[0], "--skip-compliance-check", *VIRTUAL)
    [first] = measure(tmp_path / "a", *quick)
    context = pack({"Dockerfile": f"FROM {virtual_images['quic-go']}\nLABEL again=1\n".encode()})
    image = DaemonImages(daemon).build(context, AGAIN, {}, lambda _line: None)
    assert image.id != virtual_images["quic-go"]
    [again] = measure(tmp_path / "b", *quick, "--replace", f"quic-go={AGAIN}")
    assert first.evidence.images["server"] != again.evidence.images["server"]
    assert traces(tmp_path / "a", first) == traces(tmp_path / "b", again)
    assert first.evidence.server == again.evidence.server


def test_members_differ_repeat_and_are_recorded(mine: tuple[str, str], tmp_path: Path) -> None:
    """The first one is the nominal run; the client of the second one starts later, over a link of its own."""
    quick = ("-s", "quic-go", "-c", "quic-go", "-t", mine[0], "--skip-compliance-check", "--repetitions", "2", *VIRTUAL)
    kinds = {"a": (), "again": (), "nominal": ("--perturb", "0"), "placebo": ("--placebo",)}
    found, packets = {}, {}
    for name, words in kinds.items():
        results = {each.repetition: each for each in measure(tmp_path / name, *quick, *words)}
        found[name] = {k: each.evidence.perturbation for k, each in results.items()}
        packets[name] = {k: traces(tmp_path / name, each) for k, each in results.items()}
        assert all(goodput(each) > 1e6 for each in results.values())
    assert packets["a"] == packets["again"]
    assert packets["a"][1] == packets["nominal"][1]
    assert len({b"".join(packets[name][2]) for name in kinds}) == 3
    assert packets["a"][1] != packets["placebo"][1]
    assert found["a"] == {1: NOMINAL, 2: perturbation_of(2, USUAL)}
    assert set(found["nominal"].values()) == {NOMINAL}
    assert found["placebo"] == {k: perturbation_of(k, USUAL, placebo=True) for k in (1, 2)}


def test_functional_tests_pass(virtual_images: Mapping[str, str], tmp_path: Path) -> None:
    """Handshake, resumption, Retry, 0-RTT, and 127 for what an image does not support.

    Images are checked first.
    """
    results = measure(tmp_path / "r", "-s", "quic-go", "-c", "aioquic", "-t", "H", "R", "S", "Z", "E", *VIRTUAL)
    assert {each.test_case: each.verdict.outcome for each in results} == {
        "handshake": Outcome.SUCCEEDED, "resumption": Outcome.SUCCEEDED, "retry": Outcome.SUCCEEDED,
        "zerortt": Outcome.SUCCEEDED, "ecn": Outcome.UNSUPPORTED,
    }  # fmt: skip
    compliance = load(tmp_path / "r").result_set.compliance
    assert {(each.implementation, each.role, each.compliant) for each in compliance} == {
        ("quic-go", Role.SERVER, True), ("aioquic", Role.CLIENT, True),
    }  # fmt: skip


def test_webtransport(virtual_images: Mapping[str, str], tmp_path: Path) -> None:
    """A handshake, and files that either side requests over streams or in datagrams."""
    (tmp_path / "sessions.yaml").write_text(SESSIONS)
    tests = ("-p", "webtransport", "-t", "handshake", str(tmp_path / "sessions.yaml"))
    results = measure(tmp_path / "r", "-s", "aioquic", "-c", "aioquic", *tests, "--skip-compliance-check", *VIRTUAL)
    assert {each.test_case: each.verdict for each in results} == dict.fromkeys(
        ("webtransport-handshake", "receive", "send", "datagrams"), Verdict(Outcome.SUCCEEDED)
    )
    [sent] = [each.measurement for each in results if each.test_case == "send"]
    assert 0.09 < sent.values["upload_time"] < 0.5


def test_cross_traffic(mine: tuple[str, str], tmp_path: Path) -> None:
    pair = ("-s", "quic-go", "-c", "quic-go", "-t", mine[1], "--skip-compliance-check")
    [result] = measure(tmp_path / "r", *pair, *VIRTUAL)
    assert goodput(result) < 20e6
    report = result.evidence.simulator
    assert report.cross_traffic.goodput > 1e6


def test_flows_over_quic_and_tcp_share_a_link(daemon: Daemon, mine: tuple[str, str], tmp_path: Path) -> None:
    """Each flow has endpoints of its own; the third one starts 100 ms later. tshark finds the same shares."""
    need(daemon, "nginx", "curl")
    pair = ("-s", "quic-go", "-c", "quic-go", "-t", mine[0], "--skip-compliance-check")
    [result] = measure(tmp_path / "r", *pair, "--with", "nginx-tcp/curl", "same@100ms", *VIRTUAL)
    assert 1e6 < goodput(result) < 20e6
    flows = result.measurement.flows
    assert [(flow.server, flow.protocol) for flow in flows] == [
        ("quic-go", Protocol.HQ), ("nginx-tcp", Protocol.TCP), ("quic-go", Protocol.HQ),
    ]  # fmt: skip
    assert [flow.size for flow in flows][::2] == [500 * KIB, 500 * KIB]
    assert flows[1].size > 500 * KIB
    assert flows[2].start == pytest.approx(0.1, abs=0.05)
    assert sum(flow.share or 0 for flow in flows) == pytest.approx(1)
    assert 1 / 3 < result.measurement.values["jain_index"] <= 1
    assert (tmp_path / "r" / result.key.path / "flow-3/client/keys.log").stat().st_size > 0
    [compared] = compare(tmp_path / "r")
    assert compared.difference < BAR


@pytest.mark.parametrize(("server", "client"), [("quic-go", "quic-go"), ("nginx-tcp", "curl")])
def test_all_elements_together(
    server: str, client: str, daemon: Daemon, virtual_images: Mapping[str, str], tmp_path: Path
) -> None:
    """Each acts in both directions, on QUIC and on TCP between proxies, and no packet is unaccounted for."""
    need(daemon, "nginx", "curl", "link-gateways")
    (tmp_path / "together.yaml").write_text(TOGETHER)
    (tmp_path / "up.csv").write_text("time (s), rate (Mbit/s), delay (ms), loss (%)\n0, 2, 20, 0\n0.2, 1, 30, 2\n")
    pair = ("-s", server, "-c", client, "-t", str(tmp_path / "together.yaml"), "--skip-compliance-check")
    [result] = measure(tmp_path / "r", *pair, *VIRTUAL)
    assert 0.2e6 < goodput(result) < 10e6
    assert 0 < result.measurement.values["efficiency"] < 1
    report = result.evidence.simulator
    assert report.forward.profile.began == report.back.profile.began
    assert min(report.forward.profile.changes, report.back.profile.changes) > 4
    assert report.demand.assigned >= report.demand.requested - 100 > 0
    for counters in (report.forward, report.back):
        assert min(counters.duplicated, counters.reordered, counters.out_of_order, counters.loss_drops) > 0
        lost = counters.queue_drops + counters.loss_drops
        assert counters.received - lost == pytest.approx(counters.delivered, abs=20)  # on their way at the end
    for others in (report.forward.udp_cross_traffic, report.back.udp_cross_traffic):
        assert others.sent == pytest.approx((others.end - others.begin) * 0.2e6 / (8 * 540) + 1, abs=0.01)
        assert others.delivered > 0
    if server == "quic-go":
        assert report.forward.ecn_marks > 0
    else:  # without ECN; the window is that of a proxy, not the 10 packets of Linux
        assert (report.forward.ecn_marks, window(tmp_path / "r" / result.key.path)) == (0, 100)
        assert report.forward.queue_drops > 0


def test_ready_cases_that_change(virtual_images: Mapping[str, str], tmp_path: Path) -> None:
    """A short transfer over each: profiles begin with the client, and only ``dama`` has capacity on demand."""
    (tmp_path / "ready.yaml").write_text(READY)
    pair = ("-s", "quic-go", "-c", "quic-go", "-t", str(tmp_path / "ready.yaml"), "--skip-compliance-check")
    results = {each.test_case: each for each in measure(tmp_path / "r", *pair, *VIRTUAL)}
    reports = {name: result.evidence.simulator for name, result in results.items()}
    assert sorted(reports) == ["xdama", "xfade", "xleo", "xmeo"]
    began = {}
    for name, report in reports.items():
        assert goodput(results[name]) > 0
        profiles = (report.forward.profile, report.back.profile)
        began[name] = [profile is not None and profile.began is not None for profile in profiles]
        assert (report.demand is not None and report.demand.assigned > 0) == (name == "xdama")
    assert began == {"xdama": [False, False], "xfade": [True, False], "xleo": [True, True], "xmeo": [True, True]}


def test_tcp(daemon: Daemon, mine: tuple[str, str], tmp_path: Path) -> None:
    for name in ("nginx", "curl"):
        need(daemon, name)
    [result] = measure(tmp_path / "r", "-s", "nginx-tcp", "-c", "curl", "-t", mine[0], UNCHECKED, *VIRTUAL)
    assert result.protocol is Protocol.TCP
    assert goodput(result) > 1e6
    report = result.evidence.simulator
    assert report.forward.loss_drops > 0


def test_kill_9_and_resume(mine: tuple[str, str], daemon: Daemon, tmp_path: Path) -> None:
    directory = tmp_path / "r"
    words = ("-s", "quic-go", "-c", "quic-go", "-t", mine[0], "--repetitions", "4", *VIRTUAL)
    with start_when_free(directory, *words) as process:
        process.kill()
        process.communicate()
    before = finished(directory)
    assert 1 <= len(before) < 4
    assert nothing_is_left(daemon, directory)
    status, _, err = call("resume", directory)
    assert status == 0, err
    results = load(directory).result_set.results
    assert sorted(each.repetition for each in results) == [1, 2, 3, 4]
    assert all(goodput(each) > 1e6 for each in results)
    assert {each.evidence.clock for each in results} == {Clock.VIRTUAL}


# ---- single runs ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def machines(lock: None, daemon: Daemon, virtual_images: Mapping[str, str]) -> Iterator[VirtualTestbed]:
    with VirtualBackend(daemon, virtual_images, 3e-6).open() as testbed:
        yield testbed
    assert list_containers(daemon, daemon.campaign) == ()


@pytest.fixture
def bench(daemon: Daemon, machines: VirtualTestbed, virtual_images: Mapping[str, str], tmp_path: Path) -> Bench:
    return Bench(daemon, machines, virtual_images, tmp_path)


def test_a_client_that_never_ends_costs_no_host_time(bench: Bench) -> None:
    verdict, evidence, spent = bench.run("sleep 1000", patience=600.0)
    assert (verdict.outcome, evidence.timed_out) == (Outcome.TIMEOUT, Deadline.TRANSFER)
    client = evidence.client
    assert client.killed
    assert client.life.end - client.life.begin == pytest.approx(600.0, abs=0.1)
    assert START.timestamp() < client.life.begin < START.timestamp() + 20
    assert spent < 300


@pytest.mark.parametrize(
    ("role", "script", "code", "status"),
    [
        (Role.CLIENT, "exit 127", ErrorCode.UNSUPPORTED, 127),
        (Role.SERVER, "exit 127", ErrorCode.UNSUPPORTED, 127),
        (Role.CLIENT, "bash -c 'kill -SEGV $$'", ErrorCode.CRASHED, 139),
    ],
)
def test_signals_and_exit_statuses_arrive(bench: Bench, role: Role, script: str, code: ErrorCode, status: int) -> None:
    script = f"echo not I; {script}"
    verdict, evidence, _ = bench.run(script) if role is Role.CLIENT else bench.run(server=script)
    assert verdict.code is code
    ended = evidence.client if role is Role.CLIENT else evidence.server
    assert (ended.status, ended.killed) == (status, False)
    assert "not I" in bench.output


def test_a_server_that_never_listens(bench: Bench) -> None:
    verdict, evidence, _ = bench.run(server="sleep 1000")
    assert (verdict.code, evidence.timed_out) == (ErrorCode.SERVER_NOT_READY, Deadline.READY)
    assert evidence.fault == ""


def test_files_are_kept(bench: Bench) -> None:
    """What a client has left is listed and kept at the same time, and its links are not followed."""
    script = "head -c 3000000 /dev/zero >/downloads/big; ln -s /etc/passwd /downloads/link; echo keys >/logs/keys.log"
    verdict, evidence, _ = bench.run(f"{script}; exit 1", keep=True)
    assert verdict.code == ErrorCode.CLIENT_FAILED
    assert {file.name: file.size for file in evidence.downloaded} == {"big": 3_000_000}
    assert (bench.directory / "downloads/big").read_bytes() == bytes(3_000_000)
    assert not (bench.directory / "downloads/link").exists()
    assert [path.stat().st_size for path in (bench.directory / "www").iterdir()] == [100_000]
    assert (bench.directory / "client/keys.log").read_text() == "keys\n"


@pytest.mark.parametrize(
    "crash",
    [
        Crash(Role.SERVER, "transfer", "panic"),
        Crash(Role.CLIENT, "after the other", "SIGSEGV"),
        Crash(Role.SERVER, "handshake", "memory"),
        Crash(Role.CLIENT, "transfer", "endless"),
    ],
    ids=str,
)
def test_a_crash_is_the_failure_of_its_endpoint(
    crash: Crash, daemon: Daemon, machines: VirtualTestbed, virtual_images: Mapping[str, str], tmp_path: Path
) -> None:
    """`make bench-crashes` tries all moments, manners, roles and clocks."""
    images = {**virtual_images, "crashing": image(daemon, virtual_images["aioquic"])}
    verdict, _, _ = play(crash, machines, images, Clock.VIRTUAL, tmp_path)
    assert crash.told_by(verdict), verdict


def test_no_program_can_take_the_place_of_another_when_memory_is_short(bench: Bench) -> None:
    bench.run("echo 3 >/proc/self/oom_score_adj; echo it is $(cat /proc/self/oom_score_adj); exit 1")
    assert "Read-only file system" in bench.output
    assert "it is 1" in bench.output


def test_an_endpoint_that_fills_its_disk_has_no_room(bench: Bench) -> None:
    """It cannot take so much of the machine's memory that the machine no longer ends."""
    verdict, _, _ = bench.run("head -c 3000M /dev/zero >/logs/big; exit 1")
    assert verdict.code == ErrorCode.CLIENT_FAILED
    assert verdict.reason.startswith("The client ")
    assert "No space left on device" in bench.output
    assert (bench.directory / "client/big").stat().st_size > 300 * MIB


def test_names_and_addresses_are_those_of_the_contract(bench: Bench) -> None:
    bench.run("getent hosts server6; getent ahostsv4 server4; hostname; date -u +%F; exit 1")
    words = [line.split("| ")[1].split()[1:] for line in bench.output.splitlines() if line.startswith("client")]
    assert words[0][0] == "fd00:cafe:cafe:100::100"
    assert words[1][0] == "193.167.100.100"
    assert ["client"] in words
    assert ["2026-01-01"] in words

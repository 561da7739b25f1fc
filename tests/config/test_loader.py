"""Inventory files become values; a wrong one becomes one error with all its faults, each with file and line."""

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quicsat.config.loader import (
    known_scenarios,
    load_cases_on_request,
    load_implementations,
    load_known_test_cases,
    load_test_cases,
)
from quicsat.config.variants import variant_named
from quicsat.model.cpu_cost import DEFAULT, CostModel, CpuCost
from quicsat.model.emulated_link import Direction, EmulatedLink, GilbertElliottLoss, UniformLoss
from quicsat.model.errors import InputError
from quicsat.model.implementation import (
    NOTHING_KNOWN,
    BuildArgument,
    CongestionControl,
    Contract,
    Implementation,
    Protocol,
    ReleaseSeries,
    Role,
    Variant,
    VirtualOnly,
    VirtualOnlyLink,
)
from quicsat.model.outcomes import Check
from quicsat.model.package import Package, Registry
from quicsat.model.test_case import PROTOCOL_TESTS, TestCase
from quicsat.model.units import MBPS, MIB, MS
from quicsat.model.webtransport import WebTransport
from tests.config.my_yaml import faults, read

ROOT = Path(__file__).resolve().parents[2]
MANY = json.dumps(101 * ["a"])
KNOWN = load_known_test_cases(ROOT / "testcases")
PAPERS = {name: KNOWN[name] for name in ("terrestrial", "sat", "satloss")}

LEO = """\
name: leo
abbreviation: LEO
description: A satellite in low earth orbit
link: {scenario: simple-p2p, delay: 25 ms, rate: 100 Mbit/s, queue: 50}
file size: 10 MiB
repetitions: 3
timeout: 30 s
"""


def cases(text: str) -> dict[str, TestCase]:
    return {case.name: case for case in read(text, PAPERS)}


def case_problems(text: str) -> tuple[str, ...]:
    return faults(text, PAPERS)


def child(*lines: str) -> str:
    """A test case that extends sat; its further lines begin with line 4."""
    return "\n".join(["name: mine", "abbreviation: MINE", "extends: sat", *lines])


def implementations(text: str) -> dict[str, Implementation]:
    Path("implementations.json").write_text(text, encoding="utf-8")
    return load_implementations(Path("implementations.json"))


# ---- the files of the project ---------------------------------------------------------------


def test_the_papers_measurements() -> None:
    sat = EmulatedLink("asymmetric-p2p", Direction(300 * MS, 20 * MBPS, 25), Direction(300 * MS, 2 * MBPS, 25))
    ends = ("transfer", "transfer", "server4")
    assert [
        (case.name, case.abbreviation, case.link, case.timeout, case.file_sizes, case.repetitions)
        for case in PAPERS.values()
        if (case.client_test, case.server_test, case.server_name) == ends
    ] == [
        ("terrestrial", "T", EmulatedLink.symmetric("simple-p2p", Direction(0.015, 20e6, 25)), 60, (10 * MIB,), 10),
        ("sat", "SAT", sat, 120, (10 * MIB,), 10),
        ("satloss", "SATL", sat.with_both(loss=UniformLoss(0.01)), 360, (10 * MIB,), 10),
    ]
    assert all(Path(case.source).name == f"{case.name}.yaml" for case in PAPERS.values())


PROJECT = load_implementations(ROOT / "implementations.json")


def test_the_projects_implementations() -> None:
    quic_go = PROJECT["quic-go"]
    assert (quic_go.image, quic_go.build) == ("martenseemann/quic-go-interop:latest", "endpoints/quic-go")
    assert quic_go.roles == set(Role)
    assert quic_go.protocols == (Protocol.HQ, Protocol.H3)
    assert PROJECT["chrome"].roles == {Role.CLIENT}
    assert PROJECT["chrome"].protocols == (Protocol.H3,)
    assert PROJECT["haproxy"].roles == {Role.SERVER}
    bbr = next(variant for variant in PROJECT["picoquic"].variants if variant.name == "bbr")
    assert bbr == Variant("bbr", server="-G bbr", client="-G bbr", congestion_control="bbr")
    of_the_paper = {"aioquic", "chrome", "kwik", "lsquic", "msquic", "mvfst", "neqo", "nginx", "ngtcp2", "picoquic"}
    assert of_the_paper | {"quant", "quic-go", "quiche", "quicly", "xquic"} <= set(PROJECT)


@pytest.mark.parametrize("name", sorted(PROJECT))
def test_what_is_told_of_an_implementation_is_whole(name: str) -> None:
    entry = PROJECT[name]
    assert entry.licence
    assert entry.language
    known = entry.congestion_control.known or (entry.congestion_control.default,)  # a client may have none
    assert all(variant.congestion_control in known for variant in entry.variants)
    for variant in entry.variants:
        words = {Role.SERVER: variant.server, Role.CLIENT: variant.client}
        assert {role for role in Role if words[role]} <= entry.roles


@pytest.mark.parametrize("name", sorted(name for name, entry in PROJECT.items() if entry.build))
def test_an_entry_agrees_with_its_folder(name: str) -> None:
    folder = ROOT / str(PROJECT[name].build)
    lines = dict(line.split(":") for line in (folder / "tests").read_text(encoding="utf-8").splitlines())
    assert (folder / "Dockerfile").is_file()
    assert {Role(role) for role in lines} == PROJECT[name].roles
    for tests in lines.values():  # it may know more: nginx-tcp is nginx without QUIC
        claimed = {*PROJECT[name].protocols} - {Protocol.WEBTRANSPORT}
        assert {PROTOCOL_TESTS[protocol] for protocol in claimed} <= set(tests.split())
    sessions = [case for case in load_known_test_cases(ROOT / "testcases").values() if case.webtransport]
    asked = {("client", case.client_test) for case in sessions} | {("server", case.server_test) for case in sessions}
    own = {(role, test) for role, test in asked if "-" in test}  # the other names are those of QUIC tests, too
    known = {(role, test) for role, tests in lines.items() for test in tests.split()}
    assert (Protocol.WEBTRANSPORT in PROJECT[name].protocols) == bool(own & known)


def test_scenarios_are_folders_with_a_program(tmp_path: Path) -> None:
    for name in ("b/main.cc", "b/more.cc", "a/main.cc", "c/common.cc", "main.cc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert known_scenarios(tmp_path) == ("a", "b")


# ---- test cases: what is read ---------------------------------------------------------------


def test_a_test_case_of_ones_own() -> None:
    link = EmulatedLink.symmetric("simple-p2p", Direction(0.025, 100e6, 50))
    about = "A satellite in low earth orbit"
    assert cases(LEO) == {"leo": TestCase("leo", "LEO", about, link, (10 * MIB,), 3, 30.0, source="my.yaml")}


def test_losses_are_replaced_removed_and_merged() -> None:
    found = cases(
        LEO
        + "---\nname: a\nabbreviation: A\nextends: satloss\nlink: {return loss: 0 %}\n"
        + "---\nname: b\nabbreviation: B\nextends: a\nlink: {loss: {good to bad: 0.1, bad to good: 0.5}}\n"
        + "---\nname: c\nabbreviation: C\nextends: b\nlink: {return loss: {bad to good: 0.9}}\n"
        + "---\nname: d\nabbreviation: D\nextends: c\nlink: {queue: 9}\n"
    )
    losses = {name: (case.emulated.forward.loss, case.emulated.back.loss) for name, case in found.items()}
    burst = GilbertElliottLoss(0.1, 0.5)
    assert losses == {
        "leo": (None, None),
        "a": (UniformLoss(0.01), None),
        "b": (burst, burst),
        "c": (burst, GilbertElliottLoss(0.1, 0.9)),
        "d": (burst, GilbertElliottLoss(0.1, 0.9)),
    }


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("repetitions: 2", {"repetitions": 2, "timeout": 120.0, "description": KNOWN["sat"].description}),
        ("file sizes: [1 KiB, 2 kB]", {"file_sizes": (1024, 2000), "total_size": 3024}),
        ("file sizes: 3 × 1 KiB", {"file_sizes": (1024,) * 3}),
        ("file sizes: [2 x 1 B, 5 B]", {"file_sizes": (1, 1, 5)}),
        ("file size: none\ncheck: version negotiation", {"file_sizes": (), "functional": True}),
        ("check: multiconnect\ncertificate chain: 9", {"check": Check.MULTICONNECT, "chain_length": 9}),
        ("name length: 250", {"name_length": 250, "functional": False}),
        ("endpoint test: handshake", {"client_test": "handshake", "server_test": "handshake"}),
        ("endpoint test: {client: chacha20}", {"client_test": "chacha20", "server_test": "transfer"}),
        ("server name: server6", {"server_name": "server6"}),
    ],
)
def test_keys(lines: str, expected: dict[str, object]) -> None:
    found = cases(child(lines))["mine"]
    assert {name: getattr(found, name) for name in expected} == expected


def test_functional_tests_come_first_then_measurements_by_their_deadline() -> None:
    kinds = [case.functional for case in KNOWN.values()]
    assert kinds == sorted(kinds, reverse=True)
    timeouts = [case.timeout for case in KNOWN.values() if not case.functional]
    assert timeouts == sorted(timeouts)


# Abbreviation -> TESTCASE of client and server, bytes, files, server's name (QUIC Interop Runner, testcases_quic.py).
UPSTREAM: dict[str, tuple[str, str, int, int, str]] = {
    "V": ("versionnegotiation", "versionnegotiation", 0, 0, "server4"),
    "H": ("handshake", "handshake", 1024, 1, "server4"),
    "DC": ("transfer", "transfer", 10 * MIB, 3, "server4"),
    "LR": ("handshake", "handshake", 1024, 1, "server4"),
    "C20": ("chacha20", "chacha20", 3 * MIB, 1, "server4"),
    "M": ("transfer", "transfer", 1999 * 32, 1999, "server4"),
    "S": ("retry", "retry", 10 * 1024, 1, "server4"),
    "R": ("resumption", "resumption", 15 * 1024, 2, "server4"),
    "Z": ("zerortt", "zerortt", 40 * 32, 40, "server4"),
    "3": ("http3", "http3", 515 * 1024, 3, "server4"),
    "B": ("transfer", "transfer", 10 * MIB, 1, "server4"),
    "U": ("keyupdate", "transfer", 3 * MIB, 1, "server4"),
    "E": ("ecn", "ecn", 100 * 1024, 1, "server4"),
    "A": ("transfer", "transfer", 5 * 1024, 1, "server4"),
    "L1": ("multiconnect", "multiconnect", 50 * 1024, 50, "server4"),
    "L2": ("transfer", "transfer", 2 * MIB, 1, "server4"),
    "C1": ("multiconnect", "multiconnect", 50 * 1024, 50, "server4"),
    "C2": ("transfer", "transfer", 2 * MIB, 1, "server4"),
    "6": ("transfer", "transfer", 15 * 1024, 2, "server6"),
    "V2": ("v2", "v2", 1024, 1, "server4"),
    "BP": ("transfer", "transfer", 10 * MIB, 1, "server4"),
    "BA": ("transfer", "transfer", 10 * MIB, 1, "server4"),
    "CM": ("transfer", "connectionmigration", 2 * MIB, 1, "server46"),
    "WT": ("handshake", "handshake", 0, 0, "server4"),
    "UR": ("transfer-unidirectional-receive", "transfer", 3922 * 1024, 5, "server4"),
    "US": ("transfer", "transfer-unidirectional-send", 3922 * 1024, 5, "server4"),
    "BR": ("transfer-bidirectional-receive", "transfer", 3922 * 1024, 5, "server4"),
    "BS": ("transfer", "transfer-bidirectional-send", 3922 * 1024, 5, "server4"),
    "DR": ("transfer-datagram-receive", "transfer", 159_800, 200, "server4"),
    "DS": ("transfer", "transfer-datagram-send", 159_800, 200, "server4"),
}


def test_the_functional_tests_are_upstreams() -> None:
    found = {
        case.abbreviation: (case.client_test, case.server_test, case.total_size, len(case.file_sizes), case.server_name)
        for case in KNOWN.values()
        if case.functional
    }
    assert found == UPSTREAM
    assert list(found) == list(UPSTREAM)
    assert {case.repetitions for case in KNOWN.values() if case.functional} == {1}


def test_random_numbers_can_be_those_of_the_extended_test_case() -> None:
    """Of a family, all members have the same ones, and so has what extends one of them."""
    found = cases(
        child("link: {queue: [100, 200]}", "random numbers: inherited")
        + "\n---\nname: a\nabbreviation: A\nextends: mine@queue=100\nrandom numbers: inherited\n"
        + "---\nname: b\nabbreviation: B\nextends: a\n"
        + "---\nname: c\nabbreviation: C\nextends: b\nrandom numbers: inherited\n"
        + "---\nname: d\nabbreviation: D\nextends: c\nrandom numbers: own\n"
        + "---\nname: e\nabbreviation: E\nextends: sat\nlink: {queue: [3, 4]}\n"
        + "---\nname: f\nabbreviation: F\nextends: e@queue=3\nrandom numbers: inherited\n"
    )
    assert {name: case.random_name for name, case in found.items()} == {
        "mine@queue=100": "sat", "mine@queue=200": "sat", "a": "sat", "b": "b", "c": "b", "d": "d",
        "e@queue=3": "e", "e@queue=4": "e", "f": "e",
    }  # fmt: skip


def test_known_test_cases_may_extend_each_other_across_files() -> None:
    Path("b.yaml").write_text(LEO)
    Path("a.yml").write_text("name: first\nabbreviation: A\nextends: leo\ntimeout: 99 s\n")
    assert list(load_known_test_cases(Path())) == ["leo", "first"]


def test_test_cases_in_subfolders_are_on_request() -> None:
    known = load_known_test_cases(ROOT / "testcases")
    found = load_cases_on_request(ROOT / "testcases", known)
    assert {"satcom-50", "satcom-250-loss", "direct", "tunnel", "vpn-openvpn", "geo-loss-pep-d"} <= set(found)
    assert {case.family.name for case in found.values() if case.family} >= {"satcom-loss", "satcom-loss-1gb"}
    assert not set(found) & set(known)


def test_a_test_case_on_request_may_extend_a_known_one() -> None:
    Path("mine").mkdir()
    Path("a.yaml").write_text(LEO)
    Path("mine", "b.yaml").write_text("name: first\nabbreviation: A\nextends: leo\ntimeout: 99 s\n")
    known = load_known_test_cases(Path())
    assert (list(known), list(load_cases_on_request(Path(), known))) == (["leo"], ["first"])


ON_REQUEST = load_cases_on_request(ROOT / "testcases", load_known_test_cases(ROOT / "testcases"))


@pytest.mark.parametrize("name", ON_REQUEST)
def test_an_own_test_case_may_extend_every_one_on_request(name: str) -> None:
    Path("my.yaml").write_text(f"name: mine\nabbreviation: MINE\nextends: {name}\nrepetitions: 7\n")
    [mine] = load_test_cases(Path("my.yaml"), KNOWN, ON_REQUEST)
    assert (mine.link, mine.file_sizes, mine.repetitions) == (ON_REQUEST[name].link, ON_REQUEST[name].file_sizes, 7)


def test_names_of_test_cases_on_request_are_free_for_own_ones() -> None:
    Path("my.yaml").write_text(
        "name: satcom-loss\nabbreviation: DIR\nextends: satcom-50\n"
        "---\nname: geo\nabbreviation: SC50\nextends: satcom-loss\n"
    )
    found = load_test_cases(Path("my.yaml"), KNOWN, ON_REQUEST)
    assert [(case.name, case.link) for case in found] == [
        (name, ON_REQUEST["satcom-50"].link) for name in ("satcom-loss", "geo")
    ]


@pytest.mark.parametrize(
    ("base", "hint"),
    [("satcom-5", "satcom-50"), ("vpn-nome", "vpn-none"), ("satcom-los", "satcom-loss"), ("satlos", "satloss")],
)
def test_what_own_test_cases_extend_is_guessed_among_all(base: str, hint: str) -> None:
    Path("my.yaml").write_text(f"name: mine\nabbreviation: MINE\nextends: {base}\n")
    with pytest.raises(InputError) as caught:
        load_test_cases(Path("my.yaml"), KNOWN, ON_REQUEST)
    assert [problem for problem in caught.value.problems if "extends" in problem] == [
        f'my.yaml:3: "mine": extends "{base}" is no test case. Did you mean {hint}? To list all: ./run.py list tests'
    ]


def test_a_known_file_may_be_named_as_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    known = load_known_test_cases(ROOT / "testcases")
    [found] = load_test_cases(Path("tests", "..", "testcases", "satloss.yaml"), known, {})
    assert (found.name, found.link) == ("satloss", KNOWN["satloss"].link)


def test_comments_empty_documents_and_a_byte_order_mark_do_no_harm() -> None:
    assert list(cases("\ufeff# mine\n---\n" + LEO + "---\n---\n# nothing\n")) == ["leo"]


# ---- test cases: what is refused ------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("link: {delay: 300}", 'delay "300" has no unit; allowed: 0 s to 60 s (units: us, ms, s, min, h).'),
        ("link: {forward rate: 20 Mbps}", "allowed: 1 bit/s to 100 Gbit/s. Did you mean Mbit/s?"),
        ("link: {loss: {good to bad: 0.1}}", 'loss lacks "bad to good"; write for example bad to good: 0.935'),
        ("link: {scenario: simple-p2p}", "scenario simple-p2p has one rate for both directions"),
        ("link: {dealy: 1 ms}", 'unknown key "dealy". Did you mean delay? Allowed: scenario, rtt, delay,'),
        ("link: {queue mode: papper}", 'queue mode "papper" is none of exact, paper. Did you mean paper?'),
        ("link: 300 ms", 'link "300 ms" must be a mapping; write for example link: {scenario'),
        ("link:", "link must be a mapping"),
        ("link: {delay: !!python/name:os.system 300 ms}", 'delay "python/name:os.system 300 ms" is no duration'),
        ("file size: 0 B", "1 B to 10 GiB"),
        ("file size: 11 GiB", "1 B to 10 GiB"),
        ("file size: 1.5 B", "is no whole number of bytes; allowed: 1 B to 10 GiB."),
        ("file sizes: []", 'file sizes is an empty list: "" is no size; allowed: 1 B to 10 GiB.'),
        ("file sizes: none", "a measurement needs a file."),
        ("file sizes: 0 × 1 B", 'file sizes "0 × 1 B" is out of range: 1 to 10000.'),
        ("check: handshakes", 'check "handshakes" is none of'),
        ("certificate chain: 0", 'certificate chain "0" is out of range: 1 to 20.'),
        ("file sizes: [10000 × 1 B, 1 B]", "there are more than 10000 files."),
        ("file sizes: [6 GiB, 6 GiB]", "all files together are larger than 10 GiB."),
        ("file sizes: [1 B, 0 B]", "1 B to 10 GiB"),
        ("repetitions: 0", 'repetitions "0" is out of range: 1 to 10000.'),
        ("repetitions: 10001", "1 to 10000"),
        ("repetitions: 1.5", 'repetitions "1.5" is no whole number; allowed: 1 to 10000.'),
        ("timeout: 0 s", 'timeout "0 s" is out of range: 1 ms to 24 h.'),
        ("timeout: 120", 'timeout "120" has no unit'),
        ("description: ''", 'description "" must be one line of 1 to 300 characters.'),
        ("server name: sever4", "is none of server4, server6, server46. Did you mean server4?"),
        ("endpoint test: {klient: x}", 'unknown key "klient". Did you mean client? Allowed: client, server.'),
        ("endpoint test: a b", 'endpoint test "a b" must be one word'),
        ("tiemout: 1 s", 'unknown key "tiemout". Did you mean timeout? Allowed: name, abbreviation,'),
        ("<<: {timeout: 1 s}", 'unknown key "<<".'),
        ("[a]: b", "a key must be a word."),
        ("name: again", 'key "name" is repeated; first in line 1.'),
    ],
)
def test_a_wrong_line_is_named_with_what_is_allowed(line: str, fault: str) -> None:
    [problem] = case_problems(child(line))
    assert problem.startswith(("my.yaml:4: ", 'my.yaml:4: "mine": '))
    assert fault in problem


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (LEO.replace("leo", "Leo"), '1: "Leo": name "Leo" must be 1 to 64 of a-z'),
        (LEO.replace("leo", "../leo"), 'name "../leo" must be'),
        (LEO.replace("leo", "leo.yaml"), 'name "leo.yaml" must be'),
        (LEO.replace("leo", "onlytests"), "selects several test cases on the command line"),
        (LEO.replace("LEO", "L E"), '2: "leo": abbreviation "L E" must be 1 to 10 letters'),
        (LEO.replace("leo", "sat"), 'name "sat" is taken already, by'),
        (LEO.replace("leo", "sat"), 'choose another name and write "extends: sat"'),
        (LEO.replace("leo", "satl"), 'name "satl" is taken already, by'),
        (LEO.replace("LEO", "sat"), 'abbreviation "sat" is taken already, by'),
        (f"{LEO}---\n{LEO}", '9: "leo": name "leo" is taken already, by my.yaml:1.'),
        (f"{LEO}extends: satlos\n", '8: "leo": extends "satlos" is no test case. Did you mean satloss?'),
        (f"{LEO}extends: leo\n", '8: "leo": extends itself, directly or through others.'),
        (f"{LEO}random numbers: inherited\n", '8: "leo": random numbers: a test case without extends inherits none.'),
        (f"{LEO}random numbers: none\n", '8: "leo": random numbers "none" is none of own, inherited.'),
        (f"{LEO}extends:\n", '8: "leo": extends has no value.'),
        ("- a\n- b\n", "1: must be a mapping of keys to values."),
        ("5\n", "1: must be a mapping of keys to values."),
        ("", ": holds no test case."),
        ("# nothing\n---\n", ": holds no test case."),
        ("a: [b\n", "2: no YAML: while parsing a flow sequence"),
        ("a: b: c\n", "1: no YAML: mapping values are not allowed in this context."),
        ("a: *b\n", "1: no YAML: found undefined alias."),
        ("a: 1\nb: \x07\n", "2: no YAML: character U+0007 is not allowed."),
        ('a: "\\UFFFFFFFF"', "no YAML: "),
        (f"%YAML 1.{'9' * 5000}\n---\na: b", "no YAML: "),
        ("[" * 1000, "is nested too deeply."),
        ("a: b\n---\n" * 201, "401: more than 200 documents."),
        ("#" * 300_000, "is larger than 256 KiB."),
    ],
)
def test_a_wrong_file_is_refused(text: str, fault: str) -> None:
    problems = case_problems(text)
    assert all(problem.startswith("my.yaml:") for problem in problems)
    assert any(fault in problem for problem in problems)


def test_all_that_is_missing_is_named() -> None:
    found = case_problems("link: {forward rate: 1 Mbit/s}\n")
    keys = {key for problem in found for key in re.findall(r'missing key "([^"]*)"', problem)}
    assert keys == {
        *("name", "abbreviation", "description", "file size", "repetitions", "timeout"),
        *("scenario", "delay", "return rate", "queue"),
    }
    assert 'my.yaml:1: missing key "timeout"; write for example timeout: 60 s' in found


def test_all_faults_of_all_documents_are_reported_in_order() -> None:
    text = LEO.replace("25 ms", "25").replace("10 MiB", "0 B") + "---\n" + child("timeout: 5", "foo: 1")
    assert [problem.split(":")[1] for problem in case_problems(text)] == ["4", "5", "12", "13"]


def test_all_faults_of_all_known_files_are_reported() -> None:
    Path("a.yaml").write_text(LEO.replace("30 s", "30"))
    Path("b.yaml").write_text("name: b\nabbreviation: leo\nextends: leo\nfoo: 1\n")
    Path("c.yaml").write_bytes(b"\xff")
    with pytest.raises(InputError) as caught:
        load_known_test_cases(Path())
    places = [problem.split(" ")[0] for problem in caught.value.problems]
    assert places == ["a.yaml:7:", "b.yaml:2:", "b.yaml:4:", "c.yaml:"]


def test_a_faulty_base_is_not_held_against_those_that_extend_it() -> None:
    link = "link: {scenario: simple-p2p, forward rate: 1 Mbit/s, loss: {good to bad: 0.1}}"
    text = LEO.replace("30 s", "30") + f"---\nname: b\nabbreviation: B\nextends: leo\n{link}\n"
    assert len(case_problems(text)) == 1


def test_a_circle_is_reported_and_ends() -> None:
    circle = "---\n".join(f"name: {a}\nabbreviation: {a}\nextends: {b}\n" for a, b in ("ab", "bc", "ca"))
    for text in (circle, "name: a\nabbreviation: a\nextends: a\n"):
        [problem] = case_problems(text)
        assert "extends itself, directly or through others." in problem


def test_a_checkout_without_scenarios_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quicsat.config.loader.known_scenarios", lambda: ())
    assert any("holds no scenario" in problem for problem in case_problems(LEO))


# ---- implementations ------------------------------------------------------------------------

GOOD = """\
{
  "mvfst": {
    "image": "owner/mvfst:latest",
    "url": "https://example.org",
    "role": "both"
  }
}
"""


def test_an_implementation() -> None:
    roles = frozenset({Role.CLIENT, Role.SERVER})
    expected = Implementation(
        "mvfst", "owner/mvfst:latest", "https://example.org", roles, cpu_cost=CpuCost(DEFAULT, DEFAULT)
    )
    assert implementations(GOOD) == {"mvfst": expected}
    assert implementations(GOOD.replace("  ", "\t")) == {"mvfst": expected}
    assert implementations("\ufeff" + GOOD) == {"mvfst": expected}
    assert implementations(GOOD.replace("\n", " ")) == {"mvfst": expected}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"both"', '"servr"', '5: "mvfst": role "servr" is none of client, server, both. Did you mean server?'),
        ('"both"', "5", '5: "mvfst": role "5" must be text in double quotes.'),
        ('"both"', "null", '5: "mvfst": role has no value: "" is none of client, server, both.'),
        ('"both"', '["client"]', '5: "mvfst": role "[client]" must be text in double quotes.'),
        ("owner/mvfst:latest", "Owner/mvfst", '3: "mvfst": image "Owner/mvfst" is no image reference'),
        ("https://", "ftp://", '4: "mvfst": url "ftp://example.org" must be an address'),
        ('"mvfst"', '"Mv fst"', '2: "Mv fst" is no name of an implementation'),
        ('"mvfst"', '"../x"', '2: "../x" is no name of an implementation'),
        ('"role"', '"rol"', '5: "mvfst": unknown key "rol". Did you mean role? Allowed: image, url, role, build,'),
        ('"role"', '"rol"', '2: "mvfst": missing key "role"; write for example role: "both"'),
        ('"role"', '"url"', '5: "mvfst": key "url" is repeated; first in line 4.'),
        (GOOD, '{"simulator": {"build": "x"}}', '1: "simulator" is the name of an image of quicsat itself;'),
        ('"image"', '"build": "x", "imag"', 'unknown key "imag". Did you mean image?'),
        ("}\n}", '},\n  "mvfst": {}\n}', '7: key "mvfst" is repeated; first in line 2.'),
        ("}\n}", '},\n  "x": 7\n}', '7: "x": must be a mapping of keys to values.'),
        ("}\n}", "},\n}", "no JSON: "),
        ('"both"', "'both'", "5: no JSON: Expecting value (column 13)."),
        ('"both"', "9" * 5000, "no JSON that can be read: "),
        ('"both"', "[" * 100_000, "no JSON that can be read: "),
        (GOOD, "{}", " holds no implementation."),
        (GOOD, "[]", "1: must be a mapping of keys to values."),
        (GOOD, "", "1: no JSON: Expecting value (column 1)."),
    ],
)
def test_a_wrong_implementation_is_named(old: str, new: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        implementations(GOOD.replace(old, new, 1))
    assert all(message.startswith("implementations.json:") for message in caught.value.problems)
    assert any(problem in message for message in caught.value.problems)


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ('"build": "../x"', '5: "mvfst": build "../x" must be a folder of this checkout'),
        ('"protocols": ["hq", "h4"]', '5: "mvfst": protocols "h4" is none of hq, h3, tcp, '),
        ('"protocols": []', '5: "mvfst": protocols is an empty list: "" is none of hq, h3,'),
        ('"licence": "M\u00efT"', "must be an SPDX expression such as MIT or Apache-2.0."),
        ('"language": 7', '5: "mvfst": language "7" must be text in double quotes.'),
        ('"congestion control": "bbr"', '5: "mvfst": congestion control must be a mapping of'),
        ('"congestion control": {}', 'missing key "source"; write for example source: "README'),
        *(
            (f'"congestion control": {{"source": "s", "date": "2026-11-21", {text}}}', problem)
            for text, problem in [
                ('"known": ["bbr"], "default": "bb"', '5: "mvfst": default "bb" is not among "known": bbr.'),
                ('"hystart": "yes"', '5: "mvfst": hystart "yes" must be true, false or null.'),
                ('"hystart": 1', '5: "mvfst": hystart "1" must be true, false or null.'),
                ('"source": "t"', '5: "mvfst": key "source" is repeated; first in line 5.'),
                ('"defualt": null', 'unknown key "defualt". Did you mean default? Allowed: default, known, hystart,'),
                ('"known": ["a b"]', '5: "mvfst": known "a b" must be one word'),
            ]
        ),
        ('"congestion control": {"date": "2026-13-01"}', 'date "2026-13-01" is no date; write for'),
        ('"variants": ["bbr"]', '5: "mvfst": variants must be a mapping of names to mappings.'),
        ('"variants": {"B": {"server": "x"}}', '5: "mvfst": "B" is no name of a variant: 1 to 64'),
        ('"variants": {"b": "x"}', '5: "mvfst": variant "b": must be a mapping of keys to values.'),
        ('"variants": {"b": {}}', '5: "mvfst": variant "b": changes nothing: it has neither'),
        ('"variants": {"b": {"servr": "x"}}', 'unknown key "servr". Did you mean server? Allowed:'),
        ('"variants": {"b": {"server": "a\\nb"}}', "must be one to ten words of ASCII characters"),
        ('"contract": "0x1"', '5: "mvfst": contract must be a mapping of protocols, version.'),
        ('"contract": {"version": "1"}', 'version "1" must be a QUIC version in hexadecimal digits'),
        ('"contract": {"protocols": ["a b"]}', '"a b" must be one word of 1 to 100 ASCII characters'),
        ('"contract": {"VERSION": "0x1"}', 'unknown key "VERSION". Did you mean version?'),
        (
            '"cpu cost": "3 us"',
            '5: "mvfst": cpu cost must be a mapping of server, client, measured, processor, version.',
        ),
        (
            '"virtual time only": {"date": "2026-11-28", "links": ["sat"]}',
            "links must be a mapping of test cases to clients.",
        ),
        (
            '"virtual time only": {"date": "2026-11-28", "links": {"../sat": ["*"]}}',
            'links: "../sat" is no name of a test case.',
        ),
        (
            '"virtual time only": {"date": "2026-11-28", "links": {"sat": ["quic go"]}}',
            'sat "quic go" is neither the name of an implementation nor "*" for every client.',
        ),
        (
            '"virtual time only": {"date": "2026-11-28", "links": {"sat": ["quinn", "quic-go", "quinn"]}}',
            "links: sat names quinn more than once.",
        ),
        (
            '"virtual time only": {"date": "2026-11-28", "links": {"sat": ["*", "quic-go"]}}',
            'links: sat: "*" already stands for every client.',
        ),
        (
            f'"virtual time only": {{"date": "2026-11-28", "links": {{"sat": {MANY}}}}}',
            "more than 50 test cases, or 100 clients of one.",
        ),
        ('"build arguments": ["A"]', "build arguments"),
        ('"build": "mine", "build arguments": {"a": "1"}', 'build arguments: "a" must be the name of an argument'),
        ('"build": "mine", "build arguments": {"A": "\\n"}', "1 to 500 ASCII characters"),
        ('"releases": {"from": "1"}', "releases must be a list of mappings"),
        ('"releases": [{"from": "a b"}]', 'releases: from "a b" is no version: 1 to 40 of a-z'),
        ('"releases": [{"from": "1.0"}]', "releases need a package"),
        ('"releases": [{}]', 'releases: missing key "from"'),
        ('"virtual time only": {"links": {}}', 'missing key "date"; write for example'),
        ('"cpu cost": {"server": "3 us"}', "server: must be a mapping of keys to values."),
        ('"cpu cost": {"server": {}}', '5: "mvfst": server: missing key "datagram sent"; write for'),
        ('"cpu cost": {"server": {"sent": "1 us"}}', 'unknown key "sent". Did you mean send?'),
        ('"cpu cost": {"client": {"wait": "-1 us"}}', 'client: wait "-1 us" is out of range: 0 us'),
        ('"cpu cost": {"client": {"send": "11 ms"}}', 'send "11 ms" is out of range: 0 us to 10 ms.'),
        ('"cpu cost": {"client": {"handshake": "2 s"}}', '"2 s" is out of range: 0 us to 1 s.'),
        ('"cpu cost": {"measured": "today"}', 'measured "today" is no date; write for example'),
        ('"build": "/x"', '5: "mvfst": build "/x" must be a folder of this checkout'),
    ],
)
def test_a_wrong_optional_key_of_an_implementation_is_named(added: str, problem: str) -> None:
    test_a_wrong_implementation_is_named('"both"', f'"both", {added}', problem)


WHOLE = """\
{"mine": {
  "build": "endpoints/mine", "url": "https://example.org", "role": "server",
  "protocols": ["tcp", "hq"], "licence": null, "language": "C",
  "congestion control":
    {"default": null, "known": ["reno", "bbr"], "hystart": false, "source": "its README", "date": "2026-11-21"},
  "variants": {
    "bbr": {"server": "--cc bbr"},
    "fast": {"server": "--cc reno -x", "client": "-y", "congestion control": "reno"},
    "big": {"server": "--window 32"}},
  "contract": {"protocols": ["one", "two"], "version": "0x6b3343cf"},
  "cpu cost": {
    "server": {"send": "2 us", "receive": "3 us", "wait": "0.4 us",
               "datagram sent": "6 us", "datagram received": "5 us", "handshake": "1.2 ms"},
    "measured": "2026-11-28", "processor": "AMD EPYC"},
  "virtual time only": {"date": "2026-11-28", "links": {"sat": ["quic-go", "quinn"], "satloss": ["*"]}},
  "build arguments": {"VERSION": "3.6.5", "SUITE": "sid"},
  "package": {"registry": "Go", "name": "a/b"},
  "releases": [{"from": "v1.10.0"}, {"from": "v1.9.0", "build": "old", "build arguments": {"A": "1"}}]
}}
"""


def test_all_that_may_be_said_of_an_implementation() -> None:
    expected = Implementation(
        "mine",
        "",
        "https://example.org",
        frozenset({Role.SERVER}),
        build="endpoints/mine",
        protocols=(Protocol.HQ, Protocol.TCP),
        language="C",
        congestion_control=CongestionControl(None, ("reno", "bbr"), False, "its README", "2026-11-21"),
        variants=(
            Variant("bbr", "--cc bbr", "", "bbr"),
            Variant("fast", "--cc reno -x", "-y", "reno"),
            Variant("big", "--window 32", "", None),
        ),
        contract=Contract(("one", "two"), "0x6b3343cf"),
        cpu_cost=CpuCost(CostModel(2e-6, 3e-6, 0.4e-6, 6e-6, 5e-6, 1.2e-3), DEFAULT, "2026-11-28", "AMD EPYC"),
        virtual_only=VirtualOnly(
            "2026-11-28", (VirtualOnlyLink("sat", ("quic-go", "quinn")), VirtualOnlyLink("satloss", ("*",)))
        ),
        build_arguments=(BuildArgument("SUITE", "sid"), BuildArgument("VERSION", "3.6.5")),
        package=Package(Registry.GO, "a/b"),
        releases=(ReleaseSeries("v1.9.0", "old", (BuildArgument("A", "1"),)), ReleaseSeries("v1.10.0")),
    )
    assert implementations(WHOLE) == {"mine": expected}
    assert variant_named(expected, "bbr").virtual_only == NOTHING_KNOWN
    unknown = WHOLE.replace('"hystart": false', '"hystart": null').replace('["tcp", "hq"]', '"h3"')
    mine = implementations(unknown)["mine"]
    assert (mine.congestion_control.hystart, mine.protocols) == (None, (Protocol.H3,))


def test_all_faults_of_implementations_are_reported_in_order() -> None:
    bad = GOOD.replace("owner/mvfst", "A B").replace("https", "x").replace("both", "none")
    with pytest.raises(InputError) as caught:
        implementations(bad)
    assert [problem.split(":")[1] for problem in caught.value.problems] == ["3", "4", "5"]


# ---- files that are none --------------------------------------------------------------------


@pytest.mark.parametrize("load", [load_implementations, load_test_cases])
def test_what_cannot_be_read_is_one_clear_message(load: Callable[[Path], object], tmp_path: Path) -> None:
    Path("folder.yaml").mkdir()
    Path("latin1.yaml").write_bytes(b"name: \xe9\n")
    Path("loop.yaml").symlink_to("loop.yaml")
    os.mkfifo("pipe.yaml")
    faults = {
        "missing.yaml": "no such file.",
        "folder.yaml": "is a folder; name a file.",
        "latin1.yaml": "is not UTF-8 text (byte 7).",
        "loop.yaml": "cannot be read: Too many levels of symbolic links.",
        "pipe.yaml": "is no regular file.",
        "x" * 300 + ".yaml": "cannot be read: File name too long.",
        "a\x1b.yaml": "no such file.",
    }
    if load is load_implementations:
        faults["loop.yaml"] = "is a symbolic link, which is not followed."
    for name, fault in faults.items():
        with pytest.raises(InputError) as caught:
            load(Path(name))
        assert caught.value.problems == (f"{name}: {fault}".replace("\x1b", r"\x1b"),)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_one_clear_message() -> None:
    Path("secret.yaml").touch(mode=0)
    with pytest.raises(InputError, match=r"secret.yaml: cannot be read: Permission denied\."):
        load_test_cases(Path("secret.yaml"))


def test_a_folder_of_test_cases_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"^nowhere: no such folder\.$"):
        load_known_test_cases(Path("nowhere"))


# ---- hostile files --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(f"k{n}: &k{n} [*a, *a, *a, *a, *a]\n" for n in range(500)),
        "&a {name: *a, link: *a, file sizes: [*a]}",
        "&a {name: *a, link: &b {x: *b, y: [*a, 1]}}",
        "&a [*a]",
        "link: &a {loss: *a, delay: *a}\nendpoint test: *a\n",
    ],
)
def test_aliases_do_no_harm(text: str) -> None:
    assert case_problems(text)


PIECES = [*"{}[]\"'%é\x00\n", "  ", "- ", ": ", "&a ", "*a", "!!x ", "---\n", "9" * 30]
SEEDS = {
    "test case": (LEO + "---\n" + child("link: {loss: {good to bad: 0.1, bad to good: 0.5}}"), cases),
    "implementation": (GOOD, implementations),
    "variant": (WHOLE, implementations),
}


@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("kind", sorted(SEEDS))
def test_mutated_files_raise_nothing_but_input_error(kind: str, number: int) -> None:
    text, read = SEEDS[kind]
    dice = random.Random(number)
    refused = 0
    for _ in range(25):
        try:
            read(mutated(text, dice))
        except InputError as error:
            refused += 1
            assert error.problems
            assert all(problem.isprintable() for problem in error.problems)
    assert refused > 5


def mutated(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(1, 4)):
        start = dice.randrange(len(text) + 1)
        end = min(len(text), start + dice.choice([0, 0, 1, 3, 20]))
        text = text[:start] + dice.choice(["", *PIECES, text[end:][:10]]) + text[end:]
    return text


# ---- WebTransport ---------------------------------------------------------------------------


def test_a_session_of_webtransport() -> None:
    known = load_known_test_cases(ROOT / "testcases")
    sessions = {case.name: case for case in known.values() if case.webtransport}
    assert {case.abbreviation for case in sessions.values()} == {"WT", "UR", "US", "BR", "BS", "DR", "DS"}
    assert {case.check for case in sessions.values()} == {Check.WEBTRANSPORT}
    sent = sessions["transfer-datagram-send"]
    assert (sent.client_test, sent.server_test) == ("transfer", "transfer-datagram-send")
    assert sent.file_sizes == tuple(range(600, 1000, 2))
    assert sent.webtransport is WebTransport.SEND


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("file size: 1 B\nfile sizes: [2 B]", 'my.yaml:5: "mine": write either "file size" or "file sizes".'),
        ("webtransport: receive", "webtransport needs a check"),
        ("webtransport: receive\ncheck: webtransport\nfile size: none", "a handshake has no files"),
        ("webtransport: handshake\ncheck: webtransport", "a handshake has no files"),
        ("webtransport: both\ncheck: webtransport", "handshake, receive"),
    ],
)
def test_keys_that_exclude_each_other(lines: str, fault: str) -> None:
    (problem,) = case_problems(child(lines))
    assert fault in problem

"""What a check makes of the runs: key logs that decrypt, qlogs that can be read, tests that are supported."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.cli import image_check, image_findings, image_tables
from quicsat.cli.image_check import ImageCheck
from quicsat.model import outcomes
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.evidence import Evidence, Exit
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Compliance, Manifest, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.units import MBPS, MS

DATA = Path(__file__).resolve().parents[1] / "data" / "lossy"
PEER = Implementation("quic-go", "", "", frozenset(Role))
OURS = Implementation("ours", "", "", frozenset({Role.CLIENT}))
LINK = EmulatedLink.symmetric("simple-p2p", Direction(15 * MS, 10 * MBPS, 25))
CHECKED = {
    "amplificationlimit": outcomes.Check.AMPLIFICATION_LIMIT,
    "versionnegotiation": outcomes.Check.VERSION_NEGOTIATION,
}
MANIFEST = Manifest("", "", (), "", 1, (), (), (), tuple(
    TestCase(name, "", "", LINK, (), 1, 1.0, check=check) for name, check in CHECKED.items()), {}, 0)  # fmt: skip
QLOG = b'{}\n{"name": "recovery:metrics_updated", "time": 1, "data": {}}'
Check = Callable[..., ImageCheck]


def result(case: str, verdict: Verdict | None = None) -> RunResult:
    return RunResult("quic-go", "ours", case, 1, 1, verdict or Verdict(Outcome.SUCCEEDED), Evidence("", 1))


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Looks at runs of ours as a client, whose files lie where a campaign leaves them."""
    place = tmp_path / "quic-go_ours" / image_check.LARGE / "1"
    shutil.copytree(DATA, place)
    (place / "client" / "qlog").mkdir()

    def find(*runs: RunResult, **files: bytes) -> ImageCheck:
        for name, content in files.items():
            (place / "client" / {"keys": "keys.log", "qlog": "qlog/trace.sqlog"}[name]).write_bytes(content)
        compliance = (Compliance("ours", Role.CLIENT, True, "", ""),)
        [found] = image_findings.findings([OURS], PEER, ResultSet(MANIFEST, compliance, runs, None), tmp_path)
        return found

    return find


TRANSFERS = [result(case) for case in (image_check.SMALL, image_check.LARGE, image_check.IPV6)]
LOST = Verdict(Outcome.FAILED, ErrorCode.FILE_MISSING, "A file is missing.")
SKIPPED = Verdict(Outcome.SKIPPED, ErrorCode.REQUIREMENT, "It did not succeed in handshake.")
UNKNOWN = Verdict(Outcome.UNSUPPORTED, ErrorCode.UNSUPPORTED, "The client does not support it.")


def test_a_key_log_counts_if_it_decrypts(check: Check) -> None:
    keys = (DATA / "client/keys.log").read_text()
    assert check(*TRANSFERS).key_log is True
    others = keys.replace("0", "f").replace("1", "e").encode()
    assert check(*TRANSFERS, keys=others).key_log is False
    assert check(*TRANSFERS, keys=b"").key_log is False
    handshake = "".join(line for line in keys.splitlines(keepends=True) if "HANDSHAKE" in line)
    assert check(*TRANSFERS, keys=handshake.encode()).key_log is False


def test_a_qlog_counts_if_it_can_be_read(check: Check) -> None:
    assert check(*TRANSFERS).qlog is False
    assert check(*TRANSFERS, qlog=b"not a qlog").qlog is False
    assert check(*TRANSFERS, qlog=QLOG).qlog is True


def test_nothing_is_said_of_logs_without_a_run(check: Check) -> None:
    found = check(TRANSFERS[0], result(image_check.LARGE, UNKNOWN))
    assert (found.key_log, found.qlog, found.sound) == (None, None, False)


@pytest.mark.parametrize(
    ("runs", "problems"),
    [
        (TRANSFERS, []),
        (TRANSFERS[:2], [image_check.IPV6]),
        ([*TRANSFERS[:2], result(image_check.IPV6, LOST)], [image_check.IPV6]),
        ([*TRANSFERS, result("v2", UNKNOWN), result("handshake")], []),
        ([*TRANSFERS, result("handshake", LOST), result("retry", LOST)], ["handshake", "retry"]),
        ([*TRANSFERS[:2], result(image_check.IPV6, UNKNOWN)], [image_check.IPV6]),
        ([result("handshake", UNKNOWN), *(result(run.test_case, SKIPPED) for run in TRANSFERS)],
         ["handshake", "3 further tests"]),
    ],
)  # fmt: skip
def test_all_problems_are_named_and_who_has_none_is_sound(
    check: Check, runs: list[RunResult], problems: list[str]
) -> None:
    found = check(*runs)
    assert [problem.about for problem in found.problems] == problems
    assert found.sound is not bool(problems)


def test_a_problem_leads_to_its_run(check: Check, tmp_path: Path) -> None:
    [problem] = check(*TRANSFERS, result("retry", LOST)).problems
    assert (problem.run, LOST.reason in problem.text) == (tmp_path / "quic-go_ours/retry/1", True)


def test_a_fault_of_the_peer_does_not_count(check: Check) -> None:
    found = check(*TRANSFERS, result("amplificationlimit", LOST), result("versionnegotiation", LOST))
    assert [problem.about for problem in found.problems] == ["versionnegotiation"]  # that of quic-go's client
    assert "amplificationlimit" in [note.about for note in found.notes]
    assert [run.test_case for run in found.functional] == ["versionnegotiation"]
    assert len(check(*TRANSFERS, result("amplificationlimit")).functional) == 1


def test_a_test_that_no_key_opens_is_noted(check: Check) -> None:
    sealed = Verdict(Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, "The key logs do not open it.")
    found = check(*TRANSFERS, result("zerortt", sealed))
    assert found.sound
    assert "zerortt" in [note.about for note in found.notes]


def ends(role: Role, status: int, case: str = image_check.SMALL) -> RunResult:
    """A run of ours as a client, in which the endpoint in a role ended with a status after it was stopped."""
    end = Exit(status, killed=role is Role.SERVER)
    evidence = Evidence("", 1, client=end) if role is Role.CLIENT else Evidence("", 1, server=end)
    return replace(result(case), evidence=evidence)


@pytest.mark.parametrize(("status", "noted"), [(137, True), (143, False), (0, False)])
def test_a_server_that_has_to_be_killed_is_noted(tmp_path: Path, status: int, noted: bool) -> None:
    ours = Implementation("ours", "", "", frozenset({Role.SERVER}))
    run = replace(ends(Role.SERVER, status), server="ours", client="quic-go")
    [found] = image_findings.findings([ours], PEER, ResultSet(MANIFEST, (), (run,), None), tmp_path)
    assert ("SIGTERM" in [note.about for note in found.notes]) is noted


def test_a_role_that_an_image_does_not_have(check: Check) -> None:
    assert check(ends(Role.CLIENT, 127, "handshake")).without_role
    assert not check(ends(Role.CLIENT, 1, "handshake")).without_role


def test_what_a_container_wrote_is_kept(tmp_path: Path) -> None:
    answer = Compliance("ours", Role.CLIENT, False, "it answered with 0", "", "first line\nsecond line")
    [found] = image_findings.findings([OURS], PEER, ResultSet(MANIFEST, (answer,), tuple(TRANSFERS), None), tmp_path)
    assert [problem.output for problem in found.problems] == ["first line\nsecond line"]
    assert "second line" in image_tables.check([found])


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("me/my-quic:dev", "my-quic"),
        ("registry.example.org:5000/me/my-quic", "my-quic"),
        ("my-quic", "my-quic"),
        ("me/ours:dev", "ours-image"),
        ("No Image", None),
    ],
)
def test_the_name_of_an_image_without_an_entry(image: str, name: str | None) -> None:
    found = image_check.nameless(image, ["ours"])
    assert (found.name if found else None) == name


def checked(role: Role, outcome: Outcome | None, *, without_role: bool = False) -> ImageCheck:
    """A role of an image with problems, in which the small transfer had an outcome."""
    small = result(image_check.SMALL, Verdict(outcome)) if outcome else None
    return ImageCheck("ours", role, small=small, without_role=without_role, problems=(image_check.Remark("retry", ""),))


@pytest.mark.parametrize(
    ("client", "server", "role", "pairs"),
    [
        (checked(Role.CLIENT, Outcome.SUCCEEDED), checked(Role.SERVER, Outcome.SUCCEEDED), "both",
         ["quic-go -c ours", "ours -c quic-go"]),
        (checked(Role.CLIENT, Outcome.SUCCEEDED), checked(Role.SERVER, Outcome.SKIPPED), "both",
         ["quic-go -c ours", "ours -c quic-go"]),
        (checked(Role.CLIENT, None, without_role=True), checked(Role.SERVER, Outcome.SUCCEEDED), "server",
         ["ours -c quic-go"]),
        (checked(Role.CLIENT, Outcome.FAILED), checked(Role.SERVER, Outcome.SKIPPED), "", []),
    ],
)  # fmt: skip
def test_an_image_that_carries_a_file_in_one_role_gets_an_entry_and_commands_that_measure(
    client: ImageCheck, server: ImageCheck, role: str, pairs: list[str]
) -> None:
    shown = "\n".join(image_tables.entries([client, server], {"ours": "me/ours:dev"}, ("--clock", "virtual")))
    [*entries] = [json.loads(f"{{{line}}}") for line in shown.splitlines() if line.startswith('  "')]
    assert [(each["ours"]["image"], each["ours"]["role"]) for each in entries] == [("me/ours:dev", role)] * bool(role)
    commands = [line.strip() for line in shown.splitlines() if " -t sat" in line]
    assert commands == [f"./run.py -s {pair} -t sat --clock virtual" for pair in pairs]

"""What a check makes of the runs: key logs that decrypt, qlogs that can be read, tests that are supported."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from quicsat.cli import image_check, image_trial
from quicsat.cli.image_check import ImageCheck
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Compliance, Manifest, ResultSet, RunResult

DATA = Path(__file__).resolve().parents[1] / "data" / "lossy"
PEER = Implementation("quic-go", "", "", frozenset(Role))
OURS = Implementation("ours", "", "", frozenset({Role.CLIENT}))
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
        manifest = Manifest("", "", (), "", 1, (), (), (), (), {}, 0)
        compliance = (Compliance("ours", Role.CLIENT, True, "", ""),)
        [found] = image_trial.findings([OURS], PEER, ResultSet(manifest, compliance, runs, None), tmp_path)
        return found

    return find


TRANSFERS = [result(case) for case in (image_check.SMALL, image_check.LARGE, image_check.IPV6)]
LOST = Verdict(Outcome.FAILED, ErrorCode.FILE_MISSING, "A file is missing.")
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
    ("runs", "sound", "reason"),
    [
        (TRANSFERS, True, ""),
        (TRANSFERS[:2], False, ""),
        ([*TRANSFERS[:2], result(image_check.IPV6, LOST)], False, "check-ipv6: A file is missing."),
        ([*TRANSFERS, result("v2", UNKNOWN), result("handshake")], True, ""),
        ([*TRANSFERS, result("v2", UNKNOWN), result("handshake", LOST)], False, "handshake: A file is missing."),
        ([*TRANSFERS[:2], result(image_check.IPV6, UNKNOWN)], False, "check-ipv6: The client does not support it."),
    ],
)
def test_sound_is_who_passes_what_it_knows(check: Check, runs: list[RunResult], sound: bool, reason: str) -> None:
    found = check(*runs)
    assert (found.sound, found.reason) == (sound, reason)
    assert len(found.functional) == max(len(runs) - 3, 0)

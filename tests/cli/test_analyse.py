"""What `./run.py analyse` says of runs that another runner made."""

import csv
from pathlib import Path

from tests.cli.conftest import CommandLine
from tests.foreign_builder import foreign_run, qir_output, qir_se_output
from tests.results.test_qir_logs import run


def logs(tmp_path: Path) -> Path:
    """A run of QIR, and two repetitions of QIR-SE, of which one is damaged and one has no output."""
    root = tmp_path / "logs"
    foreign_run(root / "quic-go_aioquic/transfer", output=qir_output())
    broken = foreign_run(root / "quic-go_picoquic/sat/1", output=qir_se_output())
    (broken / "sim/trace_node_left.pcap").write_bytes(b"\xa1\xb2\xc3\xd4 and nothing else")
    foreign_run(root / "quic-go_picoquic/sat/2")
    (root / "quic-go_picoquic/away").symlink_to("/")
    return root


def test_a_tree_of_runs_is_told_and_measured(tmp_path: Path, quicsat: CommandLine) -> None:
    out = quicsat.out("analyse", logs(tmp_path))
    assert out.splitlines()[:5] == [
        f"{tmp_path}/logs: 3 runs of another runner",
        "pairs (server_client): quic-go_aioquic, quic-go_picoquic",
        "test cases: transfer, sat",
        "missing in 1 of 3 runs: output.txt",
        "skipped: quic-go_picoquic/away: is a symbolic link, which is not followed",
    ]
    assert "quic-go_picoquic/sat/1: The client's trace cannot be used: " in out
    assert "the loss in its queue is unknown" in out


def test_the_numbers_as_csv(tmp_path: Path, quicsat: CommandLine) -> None:
    out = quicsat.out("analyse", logs(tmp_path), "--format", "csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert [(row["server"], row["client"], row["test case"], row["repetition"]) for row in rows] == [
        ("quic-go", "aioquic", "transfer", ""),
        ("quic-go", "picoquic", "sat", "1"),
        ("quic-go", "picoquic", "sat", "2"),
    ]
    assert [row["outcome"] for row in rows] == ["files complete", "files complete", "streams complete"]
    assert [bool(row["goodput [bit/s]"]) for row in rows] == [True, False, True]
    assert rows[0]["times from"] == "simulator"
    assert "queue" not in ",".join(rows[0])


def test_the_size_can_be_named(tmp_path: Path, quicsat: CommandLine) -> None:
    place = logs(tmp_path) / "quic-go_picoquic/sat/2"
    [row] = csv.DictReader(quicsat.out("analyse", place, "--file-size", "30 kB", "--format", "csv").splitlines())
    assert (row["size"], row["size from"], row["repetition"]) == ("30000", "option", "2")
    assert quicsat("analyse", place, "--file-size", "30")[0] == 2


def test_a_directory_of_neither_kind(tmp_path: Path, quicsat: CommandLine) -> None:
    run(tmp_path / "a_b/sat", "client", "server")
    (tmp_path / "away").symlink_to("/")
    err = quicsat.refusal("analyse", tmp_path)
    assert "and no runs of QIR or QIR-SE" in err
    assert "./away: is a symbolic link" in err
    assert quicsat("analyse", tmp_path / "nothing")[0] == 2


def test_hostile_names_do_nothing_to_a_terminal(tmp_path: Path, quicsat: CommandLine) -> None:
    run(tmp_path / "\x1b]0;evil\x07_b\n" / ("x" * 200))
    out = quicsat.out("analyse", tmp_path)
    assert "\x1b" not in out
    assert "x" * 150 not in out

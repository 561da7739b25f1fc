"""``./run.py export`` writes the formats of QIR and QIR-SE."""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from quicsat.results.store import write_result_json
from quicsat.traces.key_log import key_lines
from quicsat.traces.records import embedded_secrets, records_before_fault, records_by_interface
from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE
from tests.cli.conftest import GOOD, ROOT, Checkout, CommandLine
from tests.results_builder import result_set, run_result


@pytest.mark.parametrize("form", ["qir", "qir-se"])
def test_logs_are_named_as_the_directory_if_the_file_is_in_it(checkout: Checkout, form: str) -> None:
    checkout(*GOOD)
    file = checkout.results / "result.json"
    assert checkout("export", checkout.results, file, "--format", form)[0] == 0
    assert json.loads(file.read_text())["log_dir"] == checkout.results.resolve().name
    assert "good" in checkout("show", checkout.results)[1]


@pytest.mark.parametrize("form", ["qir", "qir-se"])
def test_export(checkout: Checkout, tmp_path: Path, form: str) -> None:
    checkout(*GOOD)
    assert checkout("export", checkout.results, tmp_path / "x.json", "--format", form) == (0, "", "")
    assert json.loads((tmp_path / "x.json").read_text())["clients"] == ["good"]


def test_the_results_of_a_campaign_are_never_lost(checkout: Checkout, tmp_path: Path) -> None:
    checkout(*GOOD)
    journal, document = checkout.results / "journal.jsonl", checkout.results / "result.json"
    before = journal.read_bytes()
    assert checkout("export", checkout.results, journal)[0] == 2
    assert journal.read_bytes() == before
    journal.rename(tmp_path / "elsewhere")
    kept = document.read_bytes()
    err = checkout.refusal("export", checkout.results, document)
    assert "FILE: " in err
    assert "campaigns keep their results in files of this name. Choose another file." in err
    assert document.read_bytes() == kept


def test_an_export_replaces_earlier_exports_and_empty_files(checkout: Checkout, tmp_path: Path) -> None:
    checkout(*GOOD)
    file, link, baseline = tmp_path / "out/x.json", tmp_path / "link.json", tmp_path / "baseline.json"
    file.parent.mkdir()
    file.touch()
    link.symlink_to(file)
    assert checkout("baseline", "save", checkout.results, baseline)[0] == 0
    for place, target, form in (
        (checkout.results, file, "qir"),
        (checkout.results, link, "qir-se"),
        (baseline, file, "qir"),
        (baseline, file, "qir-se"),
    ):
        assert checkout("export", place, target, "--format", form) == (0, "", "")
    assert "id" in json.loads(file.read_text())


@pytest.mark.parametrize("kind", ["text", "another runner's", "a removed campaign's", "baseline", "campaign"])
def test_an_export_replaces_nothing_else(checkout: Checkout, tmp_path: Path, kind: str) -> None:
    checkout(*GOOD)
    place, other = checkout.results.resolve(), tmp_path / "other"
    file = other / "result.json"
    shutil.copytree(place, other)
    if kind == "text":
        file.write_text("# quicsat\n")
    elif kind == "another runner's":
        file.write_text(json.dumps({"log_dir": "other", "servers": [], "clients": [], "measurements": []}))
    elif kind == "a removed campaign's":
        assert checkout("export", other, file)[0] == 0
    elif kind == "baseline":
        file.unlink()
        (other / "journal.jsonl").unlink()
        assert checkout("baseline", "save", place, file)[0] == 0
    (other / "journal.jsonl").unlink(missing_ok=True)
    before = file.read_bytes()
    status, out, err = checkout("export", place, file, "--format", "qir")
    assert (status, out, file.read_bytes()) == (2, "", before)
    assert err.startswith(f"{file}: ")
    assert err.endswith("Choose another file.\n")


def test_an_export_may_be_that_of_a_campaign_that_is_not_finished(checkout: Checkout, tmp_path: Path) -> None:
    checkout(*GOOD, "--repetitions", "2")
    journal = checkout.results / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"repetition": 2' not in line and "finished" not in line))
    for _ in range(2):
        assert checkout("export", checkout.results, tmp_path / "x.json") == (0, "", "")


def test_an_export_replaces_result_json_beside_a_journal_only(checkout: Checkout, tmp_path: Path) -> None:
    """Also under another name, and after the directory was renamed."""
    checkout(*GOOD)
    place, link = checkout.results.resolve(), tmp_path / "any.json"
    link.symlink_to(place / "result.json")
    assert checkout("export", place, link) == (0, "", "")
    renamed = place.rename(place.with_name("renamed"))
    assert checkout("export", renamed, renamed / "result.json") == (0, "", "")
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n")
    (renamed / "result.json").unlink()
    (renamed / "result.json").symlink_to(notes)
    assert checkout("export", renamed, renamed / "result.json")[0] == 2
    assert notes.read_text() == "# Notes\n"


@pytest.mark.parametrize("words", [("export",), ("baseline", "save")])
def test_devices_take_what_is_written(checkout: Checkout, words: tuple[str, ...]) -> None:
    checkout(*GOOD)
    assert checkout(*words, checkout.results, "/dev/null")[0] == 0


def test_a_pipe_takes_the_file_and_stays(checkout: Checkout, tmp_path: Path) -> None:
    checkout(*GOOD)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert checkout("export", checkout.results, tmp_path / "pipe") == (0, "", "")
    assert json.loads(os.read(reader, 100_000))["clients"] == ["good"]
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("socket", "is neither a file nor a pipe"),
        ("loop", "cannot be read or written: Too many levels of symbolic links"),
        ("dangling", "the directory does not exist"),
    ],
)
def test_what_cannot_be_written_is_refused(checkout: Checkout, tmp_path: Path, name: str, words: str) -> None:
    file = tmp_path / name
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("no/such/file")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(tmp_path / "socket"))
        checkout(*GOOD)
        err = checkout.refusal("export", checkout.results, file)
    assert f"{file}: {words}" in err


def test_the_file_that_quicsat_prints_to_is_refused(checkout: Checkout, tmp_path: Path) -> None:
    checkout(*GOOD)
    link = tmp_path / "link"
    link.symlink_to("/dev/stdout")
    usual = os.dup(1)
    try:
        with (tmp_path / "printed").open("wb") as printed:
            os.dup2(printed.fileno(), 1)
        status, _, err = checkout("export", checkout.results, link)
    finally:
        os.dup2(usual, 1)
        os.close(usual)
    assert (status, err) == (2, f"{link}: quicsat prints to this file. Choose another one.\n")


def test_a_file_of_others_leads_to_no_campaign_elsewhere(checkout: Checkout, tmp_path: Path) -> None:
    checkout(*GOOD)
    outside, file = tmp_path / "outside", tmp_path / "theirs" / "all.json"
    shutil.copytree(checkout.results.resolve(), outside)
    file.parent.mkdir()
    (file.parent / "link").symlink_to(outside)
    for log_dir in ("../outside", str(outside), "link"):
        file.write_text(json.dumps({"log_dir": log_dir, "servers": [], "clients": []}))
        assert checkout("export", checkout.results, file)[0] == 2, log_dir
    assert checkout("export", outside, file)[0] == 0
    assert checkout("export", checkout.results, tmp_path / "mine.json")[0] == 0
    assert checkout("export", outside, tmp_path / "mine.json")[0] == 0  # that of a campaign in results/


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The directory of a run with traces; the second run of its campaign has none."""
    place = tmp_path / "campaign"
    shutil.copytree(ROOT / "tests/data/lossy", place / "picoquic_quiche/sat/1")
    (place / "picoquic_quiche/sat/2").mkdir()
    write_result_json(place, result_set([run_result(5e6, repetition=number) for number in (1, 2)]))
    return place / "picoquic_quiche/sat/1"


def test_qlogs_of_a_run(stored: Path, tmp_path: Path, quicsat: CommandLine) -> None:
    names = ["client.sqlog", "server.sqlog", "link.sqlog"]
    assert quicsat.out("export", stored, "--format", "qlog").splitlines() == [str(stored / "qlog" / n) for n in names]
    assert sorted(path.name for path in (stored / "qlog").iterdir()) == sorted(names)
    assert (
        quicsat.out("export", stored, tmp_path / "a/b", "--format", "qlog").splitlines()[0].endswith("a/b/client.sqlog")
    )
    head = json.loads((tmp_path / "a/b/link.sqlog").read_bytes()[1:].split(b"\x1e")[0])
    assert head["trace"]["title"] == "picoquic_quiche/sat/1: the link"
    assert "parameters_set" in (tmp_path / "a/b/link.sqlog").read_text()


def test_a_capture_of_a_run_is_read_back(stored: Path, tmp_path: Path, quicsat: CommandLine) -> None:
    assert quicsat.out("export", stored, "--format", "pcapng") == f"{stored / 'run.pcapng'}\n"
    file = tmp_path / "run.pcapng"
    quicsat.out("export", stored, file, "--format", "pcapng")
    ends = records_by_interface(file)
    assert ends == {
        "client": [*records_before_fault(stored / CLIENT_TRACE)],
        "server": [*records_before_fault(stored / SERVER_TRACE)],
    }  # fmt: skip
    logs = sorted(key_lines(*(stored / log for log in KEY_LOGS)))
    assert sorted(embedded_secrets(file).decode().split("\n")[:-1]) == logs
    assert b"first loss of" in file.read_bytes()
    assert b"the last new byte" in file.read_bytes()
    told = quicsat.out("analyse", file, "--format", "csv").splitlines()
    names, values = (line.split(",") for line in told[:2])
    found = dict(zip(names, values, strict=True))
    split = quicsat.out(
        "analyse", f"{stored / CLIENT_TRACE}:{stored / SERVER_TRACE}:{stored / KEY_LOGS[0]}", "--format", "csv"
    )
    assert told == split.splitlines()
    assert found["outcome"] == "streams complete"
    assert "frame 1" in quicsat.out("packets", file, 1)


NAMES = ("picoquic", "quiche", "sat", "1")
"""Of the run of ``stored``."""


@pytest.mark.parametrize("form", ["qlog", "qlog-0.3"])
def test_exported_qlogs_are_read_back(form: str, stored: Path, quicsat: CommandLine) -> None:
    files = quicsat.out("export", stored, "--format", form).splitlines()
    of_traces = table(quicsat, f"{stored / CLIENT_TRACE}:{stored / SERVER_TRACE}:{stored / KEY_LOGS[0]}")
    for place in (stored / "qlog", ":".join(files[:2]), ":".join(files[::-1])):
        found = table(quicsat, place)
        assert found["outcome"] == "streams complete"
        for name in ("handshake [s]", "size", "goodput [bit/s]", "forward loss [1]", "return loss [1]"):
            assert float(found[name]) == pytest.approx(float(of_traces[name]), rel=1e-6)
        assert [found[name] for name in ("server", "client", "test case", "repetition")] == list(NAMES)
    told = quicsat.out("analyse", stored / "qlog")
    assert "datagrams that were lost, forward" in told
    for other in (["explain"], ["tables", "--table", "loss"]):
        assert quicsat.out(*other, stored / "qlog")
    assert f"packets {stored / 'qlog'} 1 " in quicsat.out("explain", stored / "qlog")


@pytest.mark.parametrize(
    "title",
    ["../../x_y/sat/1", "x_y/../1", "/x_y/sat/1", "x_y/sat/0", "x_y/sat/1\u001b", "x/sat/1", f"x_y/{'a' * 300}/1"],
)
def test_a_title_that_names_no_run(title: str, stored: Path, quicsat: CommandLine) -> None:
    files = quicsat.out("export", stored, "--format", "qlog").splitlines()
    for file in map(Path, files):
        file.write_text(
            file.read_text().replace('"title":"picoquic_quiche/sat/1:', f'"title":{json.dumps(title)[:-1]}:')
        )
    found = table(quicsat, stored / "qlog")
    assert (found["server"], found["test case"], found["outcome"]) == ("unknown", "captures", "streams complete")


@pytest.mark.parametrize(("server", "client"), [("qh3@2.1.0", "picoquic"), ("quiche+bbr", "quic-go@v0.48.2")])
def test_a_title_names_releases_and_variants(server: str, client: str, stored: Path, quicsat: CommandLine) -> None:
    for file in map(Path, quicsat.out("export", stored, "--format", "qlog").splitlines()):
        file.write_text(file.read_text().replace('"title":"picoquic_quiche/', f'"title":"{server}_{client}/'))
    found = table(quicsat, stored / "qlog")
    assert (found["server"], found["client"], found["test case"]) == (server, client, "sat")


def test_qlogs_of_one_run_twice_are_two_runs(stored: Path, quicsat: CommandLine) -> None:
    quicsat.out("export", stored, "--format", "qlog")
    lines = quicsat.out("analyse", stored / "qlog", stored / "qlog", "--format", "csv").splitlines()
    assert [line.split(",")[0] for line in lines[1:3]] == ["picoquic", "unknown"]


def table(quicsat: CommandLine, place: object) -> dict[str, str]:
    names, values, *_ = quicsat.out("analyse", place, "--format", "csv").splitlines()
    return dict(zip(names.split(","), values.split(","), strict=True))


def test_qlogs_that_cannot_be_written(stored: Path, tmp_path: Path, quicsat: CommandLine) -> None:
    assert "no traces of both ends. There is no file trace_node_left.pcap." in quicsat.refusal(
        "export", stored.parent / "2", "--format", "qlog"
    )
    assert "is a campaign. Pass the directory of a run." in quicsat.refusal(
        "export", tmp_path / "campaign", "--format", "qlog"
    )
    (tmp_path / "file").touch()
    quicsat.refusal("export", stored, tmp_path / "file", "--format", "qlog")
    (stored / "qlog").symlink_to(tmp_path)
    quicsat.refusal("export", stored, "--format", "qlog")
    assert not (tmp_path / "client.sqlog").exists()
    assert "needs FILE" in quicsat.refusal("export", tmp_path / "campaign")


@pytest.mark.parametrize("form", ["qlog", "qlog-0.3", "pcapng"])
def test_the_export_of_a_run_replaces_only_earlier_ones(
    stored: Path, tmp_path: Path, quicsat: CommandLine, form: str
) -> None:
    place = tmp_path / ("run.pcapng" if form == "pcapng" else "")
    files = [Path(line) for line in quicsat.out("export", stored, place, "--format", form).splitlines()]
    whole = [file.read_bytes() for file in files]
    files[0].write_bytes(b"")
    quicsat.out("export", stored, place, "--format", form)
    assert [file.read_bytes() for file in files] == whole
    foreign = b"notes", whole[-1] + b"more"
    for content in foreign if form == "pcapng" else foreign[:1]:
        files[-1].write_bytes(content)
        assert "is no earlier export" in quicsat.refusal("export", stored, place, "--format", form)
        assert files[-1].read_bytes() == content


def test_exports_change_nothing_that_belongs_to_a_run(stored: Path, tmp_path: Path, quicsat: CommandLine) -> None:
    (tmp_path / "latest").symlink_to("campaign")
    (stored / "client").mkdir(exist_ok=True)
    (stored / "output.txt").touch()
    (tmp_path / "trace").symlink_to(stored / CLIENT_TRACE)
    before = {path: path.read_bytes() for path in stored.rglob("*") if path.is_file()}
    for file in (stored / CLIENT_TRACE, stored / "output.txt", stored / "sim/new.pcapng", tmp_path / "trace"):
        quicsat.refusal("export", stored, file, "--format", "pcapng")
        quicsat.refusal("export", tmp_path / "campaign", file)
    quicsat.refusal("export", stored, stored / "server/qlog", "--format", "qlog")
    run = tmp_path / "latest" / stored.relative_to(tmp_path / "campaign")
    for form in ("qlog", "pcapng"):
        for place in ([], [run / ("qlog" if form == "qlog" else "run.pcapng")]):
            assert quicsat.out("export", run, *place, "--format", form).startswith(f"{run}/")
    new = {path for path in stored.rglob("*") if path.is_file()} - before.keys()
    assert {path: path.read_bytes() for path in before} == before
    assert {str(path.relative_to(stored)) for path in new} == {
        "run.pcapng", "qlog/client.sqlog", "qlog/server.sqlog", "qlog/link.sqlog"
    }  # fmt: skip


def test_a_capture_goes_to_a_device(stored: Path, tmp_path: Path, quicsat: CommandLine) -> None:
    quicsat.out("export", stored, "/dev/null", "--format", "pcapng")
    assert Path("/dev/null").is_char_device()

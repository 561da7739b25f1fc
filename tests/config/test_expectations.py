"""The file of ``--expect``."""

from functools import partial
from pathlib import Path

import pytest

from quicsat.config.expectations import KnownNames, load_expectations
from quicsat.config.hosts import load_hosts
from quicsat.config.loader import load_test_cases
from quicsat.images.lock_file import read_lock
from quicsat.model.errors import InputError
from quicsat.model.expectations import CellPattern, Expectations, GoodputFloor, KnownFailure
from tests.results_builder import SAT

WHOLE = """\
baseline: stored/baseline.json
regression: 2.5 %
known failures:
  - {server: [quic-go, "picoquic:bbr"], test: satloss, reason: issue 7}
goodput floors:
  - {client: quic-go, floor: 5 Mbit/s}
"""


KNOWN = KnownNames(
    frozenset({"quic-go", "picoquic", "picoquic:bbr", "a"}),
    frozenset({"sat", "SAT", "satloss", "SATL", "lossy@loss=1pct", "lossy"}),
    frozenset({"page-p50", "P50"}),
)


def test_all_keys(tmp_path: Path) -> None:
    (tmp_path / "expect.yml").write_text(WHOLE)
    assert load_expectations(tmp_path / "expect.yml", KNOWN) == Expectations(
        (KnownFailure(CellPattern(("quic-go", "picoquic:bbr"), (), ("satloss",)), "issue 7"),),
        (GoodputFloor(CellPattern((), ("quic-go",)), 5e6),),
        tmp_path / "stored/baseline.json",
        0.025,
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "must hold one document"),
        ("- a", "must be a mapping"),
        ("known failure: []", "Did you mean known failures?"),
        ("regression: 5", "regression"),
        ("regression: 101 %", "regression"),
        ("known failures: {server: a}", "must be a list of mappings"),
        ("known failures: [a]", "must be a mapping"),
        ("known failures: [{reason: x}]", "expect.yml:1: known failures: name a server, a client or a test"),
        ("known failures: [{server: a, floor: 1 Mbit/s}]", 'unknown key "floor"'),
        ("known failures: [{server: A b}]", "is no implementation"),
        ("known failures: [{server: quicgo}]", "is no implementation and no variant. Did you mean quic-go"),
        ("known failures: [{client: [a, picoquic:bb]}]", "Did you mean picoquic:bbr?"),
        ("goodput floors: [{test: satlos, floor: 5 Mbit/s}]", '"satlos" is no test case and no family. Did you mean'),
        ("known failures: [{test: sat+page-p5}]", "Did you mean sat+page-p50?"),
        ("known failures: [{test: zat+page-p50}]", "is no test case"),
        (f"known failures: [{{server: a, reason: {'x' * 301}}}]", "must be one line of 1 to 300 characters"),
        (r'known failures: [{server: a, reason: "x\ny"}]', "must be one line of 1 to 300 characters"),
        (r'known failures: [{server: a, reason: "\e[31mx"}]', "must be one line of 1 to 300 characters"),
        ('baseline: ""', 'baseline "" must be one line'),
        ("goodput floors: [{test: sat}]", 'missing key "floor"'),
        ("goodput floors: [{test: sat, floor: 5}]", "floor"),
        ("goodput floors: [{test: sat, floor: 0 bit/s}]", "floor"),
    ],
)
def test_faults_name_the_file_and_what_is_wrong(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "expect.yml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_expectations(tmp_path / "expect.yml", KNOWN)
    assert fault in str(caught.value)
    assert "expect.yml" in str(caught.value)


def test_names_of_implementations_match_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "expect.yml").write_text("known failures: [{server: QUIC-GO, client: [Picoquic:BBR, A]}]\n")
    [known] = load_expectations(tmp_path / "expect.yml", KNOWN).known_failures
    assert known.cells == CellPattern(("quic-go",), ("picoquic:bbr", "a"))


def test_cells_are_written_as_an_entry(tmp_path: Path) -> None:
    cells = CellPattern(
        ("quic-go", "picoquic:bbr"), ("picoquic:bbr",), ("lossy@loss=1pct", "sat+page-p50~quic-go_a_2s")
    )
    (tmp_path / "expect.yml").write_text(f"known failures: [{cells.entry}, {CellPattern(cells.servers).entry}]\n")
    known = load_expectations(tmp_path / "expect.yml", KNOWN).known_failures
    assert [each.cells for each in known] == [cells, CellPattern(cells.servers)]


@pytest.mark.parametrize(
    "label",
    ["SAT", "satL", "lossy", "lossy@loss=1pct", "sat+page-p50", "SAT+p50", "sat~same", "sat+page-p50~quic-go_a_2s"],
)
def test_labels_of_test_cases(label: str) -> None:
    assert KNOWN.test_case(label) == label


def test_patterns() -> None:
    pattern = CellPattern(("a", "b"), (), ("SAT",))
    assert pattern.fits("b", "any", SAT)
    assert not pattern.fits("c", "any", SAT)
    assert not CellPattern((), ("x",)).fits("a", "y", SAT)
    assert not CellPattern(test_cases=("satloss",)).fits("a", "b", SAT)
    assert str(pattern) == "server a or b, test case SAT"


def test_no_file_is_a_link_that_leads_out_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages quote keys and values of the file, and the author of a pull request reads them."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    monkeypatch.chdir(checkout)
    (tmp_path / "secret").write_text("TOKEN: x\n")
    (checkout / "inside.yml").write_text("regression: 1 %\n")
    (checkout / "out.yml").symlink_to("../secret")
    (checkout / "in.yml").symlink_to("inside.yml")
    for load in (partial(load_expectations, known=KNOWN), load_test_cases, load_hosts, read_lock):
        with pytest.raises(InputError, match=r"^out.yml: is a link that leads out of ") as raised:
            load(Path("out.yml"))
        assert "TOKEN" not in str(raised.value)
    assert load_expectations(Path("in.yml"), KNOWN).regression == 0.01


@pytest.mark.parametrize("baseline", ["/proc/self/environ", "../secret.json", "link.json"])
def test_a_baseline_outside_of_the_checkout_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baseline: str
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    monkeypatch.chdir(checkout)
    (checkout / "link.json").symlink_to("../secret.json")
    (checkout / "e.yml").write_text(f"baseline: {baseline}\n")
    with pytest.raises(InputError, match="is not below the folder of this file"):
        load_expectations(Path("e.yml"), KNOWN)

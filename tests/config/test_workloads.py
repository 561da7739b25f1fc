"""Workloads in YAML: what they become, and one error with all faults."""

from pathlib import Path

import pytest

from quicsat.config.workloads import load_workloads
from quicsat.model.errors import InputError
from quicsat.model.workload import ObjectType, RequestOrder
from tests.config.my_yaml import faults, read
from tests.engine.conftest import ROOT

OURS = load_workloads(ROOT / "testcases/workloads")
HEAD = "name: one\nabbreviation: ONE\ndescription: something\n"
PAGE, FONT = "{type: html, files: 9 kB}", "{type: font, files: 9 kB, after: "
LINK = "link: {scenario: simple-p2p, delay: 15 ms, rate: 20 Mbit/s, queue: 25}\nrepetitions: 1\ntimeout: 60 s\n"


def problems(folder: Path, text: str) -> list[str]:
    (folder / "w.yaml").write_text(text)
    with pytest.raises(InputError) as raised:
        load_workloads(folder)
    return [problem.partition(": ")[2] for problem in raised.value.problems]


def test_the_pages_have_the_numbers_of_their_source() -> None:
    """Requests of each type at the 10th, 25th, 50th, 75th and 90th percentile; bytes within 1 % of the source."""
    counts = {
        ObjectType.CSS: (2, 4, 8, 16, 26),
        ObjectType.SCRIPT: (5, 12, 24, 43, 69),
        ObjectType.FONT: (0, 2, 4, 7, 11),
        ObjectType.IMAGE: (5, 9, 18, 33, 60),
        ObjectType.HTML: (1, 1, 2, 6, 12),
    }
    kib = {
        ObjectType.CSS: (10, 36, 80, 152, 269),
        ObjectType.SCRIPT: (101, 270, 620, 1172, 1834),
        ObjectType.IMAGE: (84, 322, 1054, 2822, 6526),
    }
    pages = [OURS[f"page-p{percentile}"] for percentile in (10, 25, 50, 75, 90)]
    for kind, numbers in counts.items():
        assert tuple(page.workload.types.count(kind) for page in pages) == numbers
    for kind, sizes in kib.items():
        for page, size in zip(pages, sizes, strict=True):
            files = zip(page.file_sizes, page.workload.types, strict=True)
            assert sum(each for each, other in files if other is kind) / 1024 == pytest.approx(size, rel=0.01)


def test_our_workloads_say_what_they_are() -> None:
    assert OURS["sizes"].file_sizes == (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
    assert OURS["sizes"].workload.requests is RequestOrder.SEPARATE
    assert OURS["request-response"].workload.after == tuple(range(20))
    assert OURS["bulk"].workload.duration == 30
    for each in OURS.values():
        if each.workload.types:
            assert f"{len(each.file_sizes)} objects of {sum(each.file_sizes) / 1e6:.1f} MB" in each.description


def test_objects_of_a_page_wait_in_turn() -> None:
    page = OURS["page-p10"].workload
    assert page.types[0] is ObjectType.HTML
    assert page.after == (0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 5, 4)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'needs one of "file size", "file sizes", "objects" and "duration".'),
        ("file size: 1 kB\nduration: 3 s\n", 'needs one of "file size"'),
        ("file size: 1 kB\nrequests: sequentially\n", "Did you mean sequential?"),
        ("duration: 3 s\nrequests: sequential\n", "a duration goes with a single request."),
        ("duration: 2 h\n", "is out of range: 1 s to 1 h."),
        ("objects: {a: {type: image, files: 9 kB}}\n", "the first group is the page itself"),
        ("objects: {a: {type: html, files: 2 × 9 kB}}\n", "the first group is the page itself"),
        ("objects: {a: {type: html, files: 9 kB}, b: {type: css, files: 9 kB}}\n", 'missing key "after"'),
        ("objects: {a: {type: html, files: 9 kB}, b: {type: css, files: 9 kB, after: c}}\n", "is none of a."),
        ("objects: {a: {type: html, files: 1 kB}, b: {type: css, files: 8 × 9 kB, after: a}}\n", "but needs 1.5 KiB"),
        (f"objects: {{a: {PAGE}, b: {FONT}a}}, c: {FONT}b}}}}\n", "a file of type font names no others."),
    ],
)
def test_faults(tmp_path: Path, text: str, problem: str) -> None:
    [found] = problems(tmp_path, HEAD + text)
    assert problem in found


def test_names_and_abbreviations_are_unique(tmp_path: Path) -> None:
    one = HEAD + "file size: 1 kB\n"
    found = problems(tmp_path, f"{one}---\n{one}---\n{one.replace('name: one', 'name: two')}")
    assert [each.partition(": ")[2] for each in found] == [
        'name "one" is taken already.', "abbreviation ONE is that of one.",
    ]  # fmt: skip


# ---- in test cases --------------------------------------------------------------------------


def test_a_test_case_names_a_workload() -> None:
    [found] = read(f"{HEAD}{LINK}workload: page-p10\n")
    assert found.workload == OURS["page-p10"].workload
    assert found.file_sizes == OURS["page-p10"].file_sizes
    assert found.client_test == "ordered"


def test_a_test_case_has_a_workload_of_its_own() -> None:
    [found] = read(f"{HEAD}{LINK}workload: {{duration: 4 s}}\n")
    assert (found.file_sizes, found.timeout) == ((10_000_000,), 4)


def test_a_workload_is_inherited_and_replaced() -> None:
    text = f"{HEAD}{LINK}workload: {{file size: 3 × 1 kB, requests: sequential}}\n"
    text += "---\nname: two\nabbreviation: TWO\nextends: one\nlink: {rate: 10 Mbit/s}\n"
    text += "---\nname: three\nabbreviation: THREE\nextends: one\nfile size: 1 MB\n"
    one, two, three = read(text)
    assert two.workload == one.workload
    assert two.file_sizes == (1000, 1000, 1000)
    assert (three.workload, three.file_sizes, three.client_test) == (None, (1_000_000,), "transfer")


def test_the_size_of_bulk_follows_the_link() -> None:
    text = f"{HEAD}{LINK}workload: bulk\n---\nname: two\nabbreviation: TWO\nextends: one\nlink: {{rate: 10 Mbit/s}}\n"
    assert [each.file_sizes for each in read(text)] == [(75_000_000,), (37_500_000,)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("workload: pagep50\n", "Did you mean page-p50?"),
        ("workload: bulk\nfile size: 1 kB\n", 'write either "workload" or "file size".'),
        ("workload: bulk\nendpoint test: retry\n", 'write either "workload" or "endpoint test".'),
        ("workload: bulk\ncheck: retry\n", "a functional test has no workload."),
        ("workload: {name: x, file size: 1 kB}\n", 'unknown key "name"'),
    ],
)
def test_faults_in_test_cases(text: str, problem: str) -> None:
    found = faults(HEAD + LINK + text)
    assert any(problem in each for each in found), found

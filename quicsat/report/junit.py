"""A judgement as a JUnit XML report, which most CI systems show; a test case per cell."""

from collections.abc import Sequence
from xml.etree import ElementTree

from quicsat.model.results import ResultSet
from quicsat.model.text import printable
from quicsat.report.cell_reasons import ALL_PAIRS, REFUSED, reasons
from quicsat.statistics.judgement import OPEN, Finding, JudgedCell, Judgement

SKIPPED = frozenset({Finding.KNOWN_FAILURE, Finding.FAILS_AS_BEFORE, Finding.UNSUPPORTED, Finding.NOT_RUN})
"""Findings that JUnit has no word for but skipped."""
ERRORS = OPEN | {Finding.ERROR, Finding.UNFINISHED}
"""Findings with which a cell has neither passed nor failed, so that the campaign must not look like a success."""


def junit(results: ResultSet, judgement: Judgement) -> bytes:
    """The report in UTF-8: a test suite per test case of quicsat, with a test case per cell."""
    root = ElementTree.Element("testsuites", name="quicsat")
    for case in results.manifest.test_cases:
        cells = [cell for cell in judgement.cells if cell.case.name == case.name]
        suite = ElementTree.SubElement(root, "testsuite", name=case.name, timestamp=_text(results.manifest.started))
        _count(suite, cells)
        for cell in cells:
            suite.append(_cell(cell))
    worse = [each.text for each in judgement.groups if each.worse]
    better = [each.text for each in judgement.groups if not each.worse]
    if judgement.groups:
        suite = _suite(root, "implementations", failures=len(worse) > 0)
        element = ElementTree.SubElement(suite, "testcase", classname="implementations", name=ALL_PAIRS)
        if worse:
            _add(element, "failure", ALL_PAIRS, " ".join(worse), "")
        if better:
            ElementTree.SubElement(element, "system-out").text = _text(" ".join(better))
    if judgement.open:
        suite = _suite(root, "campaign", errors=True)
        element = ElementTree.SubElement(suite, "testcase", classname="campaign", name="judgement")
        _add(element, "error", "undecided", " ".join(judgement.open), "")
    more = {"failures": len(worse) > 0, "errors": len(judgement.open) > 0}
    _count(root, judgement.cells, **more, tests=bool(judgement.groups) + bool(judgement.open))
    return _written(root)


def _suite(
    root: ElementTree.Element, name: str, *, failures: bool = False, errors: bool = False
) -> ElementTree.Element:
    """A test suite with one test case."""
    suite = ElementTree.SubElement(root, "testsuite", name=name)
    _count(suite, [], failures=failures, errors=errors, tests=1)
    return suite


def refusal(faults: Sequence[str]) -> bytes:
    """The report of a campaign that cannot be compared with its baseline: one error."""
    root = ElementTree.Element("testsuites", name="quicsat")
    suite = _suite(root, "baseline", errors=True)
    root.attrib |= {key: value for key, value in suite.attrib.items() if key != "name"}
    case = ElementTree.SubElement(suite, "testcase", classname="baseline", name="comparison")
    _add(case, "error", "cannot be compared", f"{REFUSED}: {' '.join(faults)}", "")
    return _written(root)


def _count(
    element: ElementTree.Element, cells: Sequence[JudgedCell], *, failures: int = 0, errors: int = 0, tests: int = 0
) -> None:
    """``failures``, ``errors`` and ``tests``: those besides the cells."""
    element.set("tests", str(len(cells) + tests))
    element.set("failures", str(sum(cell.unexpected for cell in cells) + failures))
    element.set("errors", str(sum(cell.finding in ERRORS for cell in cells) + errors))
    element.set("skipped", str(sum(cell.finding in SKIPPED for cell in cells)))


def _cell(cell: JudgedCell) -> ElementTree.Element:
    sample = cell.sample
    name = f"server {sample.server}, client {sample.client}"
    took = sum(result.evidence.transfer_time for result in cell.results)
    element = ElementTree.Element("testcase", classname=_text(cell.case.name), name=_text(name), time=f"{took:.3f}")
    if sample.mean is not None:
        properties = ElementTree.SubElement(element, "properties")
        ElementTree.SubElement(properties, "property", name="goodput [bit/s]", value=f"{sample.mean:.0f}")
    summary, why = " ".join(cell.details), "\n".join(reasons(cell))
    if cell.finding in ERRORS:
        _add(element, "error", cell.finding, summary, why)
    elif cell.unexpected:
        _add(element, "failure", cell.finding, summary, why)
    elif cell.finding in SKIPPED:
        ElementTree.SubElement(element, "skipped", message=_text(f"{cell.finding}. {summary}".strip()))
    elif summary:
        ElementTree.SubElement(element, "system-out").text = _text(f"{cell.finding}. {summary}")
    return element


def _add(parent: ElementTree.Element, tag: str, kind: str, message: str, text: str) -> None:
    element = ElementTree.SubElement(parent, tag, type=kind, message=_text(message))
    element.text = "\n".join(map(_text, text.splitlines())) or None


def _written(root: ElementTree.Element) -> bytes:
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _text(text: str) -> str:
    """Without characters that XML does not allow."""
    return printable(text, None)

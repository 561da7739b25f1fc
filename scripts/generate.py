"""Writes what follows from the code: the JSON Schema of results, the command reference, and tables of the reference.

In a page, a table stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from quicsat.analysis.functional_tests.rule import rules
from quicsat.analysis.metrics import METRICS
from quicsat.cli import reference
from quicsat.cli.image_tables import sources, stated
from quicsat.config.loader import load_implementations, load_known_test_cases
from quicsat.docker.provenance import labels_of
from quicsat.images.build_recipes import recipe_of
from quicsat.model.outcomes import Check, ErrorCode
from quicsat.plots.discovery import plots
from quicsat.results.document import SCHEMA_FILE, json_schema

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs/reference"
KINDS = {
    "results": "based on results",
    "campaigns": "based on several campaigns",
    "runs": "based on the packets of a run",
    "all runs": "based on the packets of several runs",
}
"""``Plot.of`` -> how the guide says it."""


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in (header, *rows)]
    return "".join([lines[0], "|---" * len(header), "|\n", *lines[1:]])


def functional_rules() -> str:
    """The rules of functional tests."""
    rows = ((_tests()[each.check], each.requirement, each.rfc, each.qir) for each in map(rules().__getitem__, Check))
    return table(("test", "requirement", "RFC", "QIR"), rows)


def checks() -> str:
    """The checks, and the tests that use them."""
    return table(("check", "tests"), ((f"`{check}`", _tests()[check]) for check in Check))


def _tests() -> Mapping[Check, str]:
    """The abbreviations of the tests that use a check."""
    cases = load_known_test_cases(ROOT / "testcases").values()
    return {check: ", ".join(case.abbreviation for case in cases if case.check is check) for check in Check}


def functional_codes() -> str:
    """The error codes of functional tests."""
    return table(("code", "meaning"), ((f"`{code}`", code.meaning) for code in ErrorCode if code.meaning))


def metrics() -> str:
    """The metrics."""
    rows = ((f"`{each.name}`", each.unit, each.label, each.better) for each in METRICS)
    return table(("metric", "unit", "description", "better"), rows)


def figures() -> str:
    """The figures by what they are drawn from."""
    names = {kind: [name for name, plot in plots().items() if plot.of == kind] for kind in KINDS}
    rows = ((KINDS[kind], ", ".join(f"`{name}`" for name in sorted(some))) for kind, some in names.items() if some)
    return table(("kind", "names"), rows)


def image_sources() -> str:
    """From which sources the images of this repository are built."""
    known = load_implementations(ROOT / "implementations.json").values()
    recipes = {each.name: recipe_of(ROOT, each) for each in known if each.build is not None}
    stated_by = {name: labels_of(each.folder / "Dockerfile", each.arguments) for name, each in recipes.items()}
    return sources([stated(name, "", labels) for name, labels in stated_by.items()], markdown=True) + "\n"


TABLES: Mapping[Path, dict[str, Callable[[], str]]] = {
    REFERENCE / "functional-tests.md": {"rules": functional_rules},
    REFERENCE / "outcomes.md": {"codes of functional tests": functional_codes},
    REFERENCE / "test-cases.md": {"checks": checks},
    REFERENCE / "metrics.md": {"metrics": metrics},
    REFERENCE / "image-sources.md": {"sources": image_sources},
    ROOT / "docs/guide/results.md": {"figures": figures},
}


def generated() -> dict[Path, str]:
    """Each file, and the text that it should have."""
    schema = json.dumps(json_schema(), indent=4, ensure_ascii=False) + "\n"
    files = {SCHEMA_FILE: schema, REFERENCE / "cli.md": reference.markdown()}
    for page, tables in TABLES.items():
        text = page.read_text(encoding="utf-8")
        for name, make in tables.items():
            start, end = f"<!-- generated: {name} -->\n\n", "\n<!-- end -->"
            around = re.split(f"(?<={start}).*?(?={end})", text, flags=re.S)
            if len(around) != 2:
                message = f"{page}: the table {name} must stand once between {start.strip()} and {end.strip()}."
                raise LookupError(message)
            text = make().join(around)
        files[page] = text
    return files


def stale() -> dict[Path, str]:
    """The files that differ from the code, and the text that they should have."""
    return {path: text for path, text in generated().items() if path.read_text(encoding="utf-8") != text}


if __name__ == "__main__":
    for file, contents in stale().items():
        file.write_text(contents, encoding="utf-8")

"""A site of campaigns in which every text and file is hostile."""

from dataclasses import replace
from pathlib import Path

from quicsat.model.evidence import Evidence, HostFacts
from quicsat.model.implementation import CongestionControl, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Compliance, ImageFacts, Provenance, ResultSet, RunResult, Versions
from tests.payloads import PAYLOADS
from tests.results_builder import SAT, implementation, result_set, run_result
from tests.site import builder
from tests.site.test_safe_svg import HOSTILE

_VARIANTS = "URI: x\nContent-type: text/html\nBody:----x----\n<script>window.pwned=1</script>\n----x----\n"
"""What Apache shows as a page if it takes the file for a list of variants (mod_negotiation)."""


def _result(number: int, bad: str) -> RunResult:
    base = run_result(None, server=f"s{number}", client="picoquic", test_case=f"t{number}")
    host = HostFacts(bad, bad, 2, 1, bad, 0.0, processor=bad)
    evidence: Evidence = replace(base.evidence, fault=bad, host=host, notes=(bad,))
    return replace(base, verdict=Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED, bad), evidence=evidence)


def campaign(number: int, bad: str) -> ResultSet:
    """A campaign of one run in which every text is hostile."""
    names = (f"s{number}", "picoquic")
    case = replace(SAT, name=f"t{number}", abbreviation=f"T{number}", description=bad, source=bad, repetitions=1)
    plain = result_set([_result(number, bad)], servers=names[:1], clients=names[1:], test_cases=(case,))
    control = CongestionControl(bad, (bad,), None, bad, bad)
    described = tuple(
        replace(implementation(name), image=bad, url=bad, licence=bad, language=bad, congestion_control=control)
        for name in names
    )
    facts = ImageFacts(bad, bad, (bad,), bad, 1, bad, bad, Provenance(bad, bad, bad, (bad, bad), bad, bad, bad))
    manifest = replace(
        plain.manifest, id=f"{number}{bad}", command=(bad, bad), tool_version=bad, versions=Versions(*[bad] * 4),
        implementations=described, images={names[0]: facts, "simulator": facts},
    )  # fmt: skip
    judged = Compliance(names[0], Role.SERVER, False, bad, bad)
    return replace(plain, manifest=manifest, compliance=(judged,))


def _add_files(directory: Path, run: Path, number: int, bad: str) -> None:
    """Logs, qlogs and figures of a campaign and of its run."""
    (run / "client").mkdir()
    name = bad.replace("/", "|").replace("\0", "")[:200]
    files = {f"{name}.log": bad, "x.qlog": bad, "x.html": bad, "x.var.txt": _VARIANTS, "x.var.json": _VARIANTS}
    for each, content in files.items():
        (run / "client" / each).write_text(content, encoding="utf-8")
    (directory / "plots").mkdir()
    for form in ("svg", "png", "pgf", "pdf", "csv"):
        (directory / f"plots/words.{form}").write_text(bad, encoding="utf-8")
    (directory / "plots/x.var.svg").write_bytes(HOSTILE[number % len(HOSTILE)])


def site(place: Path) -> Path:
    """The site, below ``place``: a campaign for each payload."""
    for number, bad in enumerate(PAYLOADS):
        directory = builder.on_disk(place / "results" / str(number), campaign(number, bad), output=f"{bad}\n")
        _add_files(directory, directory / f"s{number}_picoquic/t{number}/1", number, bad)
    builder.build(place / "results", place / "site", files=True)
    return place / "site"


def files(site: Path) -> list[str]:
    """Addresses of the files of its runs and of its figures, below the root."""
    found = [*site.glob("runs/*/p/*/*/*/files-*/*"), *site.glob("runs/*/figures/*.[sp]*")]
    return sorted(str(path.relative_to(site)) for path in found)

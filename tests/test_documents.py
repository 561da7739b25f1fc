"""Numbers and names that documents tell of the code are those of the code."""

import re
from pathlib import Path

from quicsat.analysis.metrics import METRICS
from quicsat.model.outcomes import OURS, ErrorCode

ROOT = Path(__file__).resolve().parents[1]
CHANGES = (ROOT / "CHANGELOG.md").read_text()


def test_what_raises_a_fault_of_ours_has_a_code_of_ours() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "quicsat").rglob("*.py"))
    raised = re.findall(r"(?:our_error|HarnessFault)\(\s*ErrorCode\.(\w+)", sources)
    assert len(raised) > 30
    assert {ErrorCode[name] for name in raised} - OURS == {ErrorCode.ARTEFACT_LIMIT}  # a client's downloads


def test_numbers_per_run_are_as_many_as_told() -> None:
    told = re.search(r"(\d+) metrics per run", CHANGES)
    assert int(told[1]) == len(METRICS)


def test_scenarios_are_those_that_are_told() -> None:
    [told] = re.findall(r"the QUIC Interop Runner's scenarios under the same names: (.*?)\n- ", CHANGES, re.S)
    scenarios = {path.parent.name for path in ROOT.glob("ns3-scenarios/*/main.cc")}
    ours = {"asymmetric-p2p", "simple-p2p"}  # told with the links
    assert {name for name in scenarios - ours if name not in told} == set()
    assert "Only `udp-cross-traffic` is missing" in told
    assert "udp-cross-traffic" not in scenarios

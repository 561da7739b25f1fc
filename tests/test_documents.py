"""Faults that the program raises have codes that blame no pair."""

import re
from pathlib import Path

from quicsat.model.outcomes import OURS, ErrorCode

ROOT = Path(__file__).resolve().parents[1]


def test_what_raises_a_fault_of_ours_has_a_code_of_ours() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "quicsat").rglob("*.py"))
    raised = re.findall(r"(?:our_error|HarnessFault)\(\s*ErrorCode\.(\w+)", sources)
    assert len(raised) > 30
    assert {ErrorCode[name] for name in raised} - OURS == {ErrorCode.ARTEFACT_LIMIT}  # a client's downloads

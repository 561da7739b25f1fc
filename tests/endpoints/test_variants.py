"""Every variant of a server takes effect: it is told from all its siblings, and the default from no second one."""

from pathlib import Path

import pytest

from bench import variants
from tests.endpoints.conftest import KNOWN, need

WITH_VARIANTS = [name for name, each in KNOWN.items() if variants.names_of(each) and each.build is not None]
ONE_PACKET = {"aioquic:reno": 0.5, "quiche:reno": 0.5, "quiche:cubic": 0.7, "neqo:newreno": 0.5, "neqo:cubic": 0.7}
"""What is kept of the window after a loss (RFC 9002, section 7.3.2; RFC 9438, section 4.6), where the qlog tells it."""


@pytest.mark.parametrize("name", WITH_VARIANTS)
def test_variants_take_effect(tmp_path: Path, name: str) -> None:
    need(KNOWN[name])
    variants.measure(KNOWN[name], tmp_path)
    found = variants.runs_of(tmp_path)
    assert sorted(found) == sorted(variants.names_of(KNOWN[name]))
    text, all_shown = variants.table(found)
    assert all_shown, text
    plain = next(effect for effect in variants.effects(found) if effect.name == name)
    told = KNOWN[name].congestion_control
    default = f"{name}:{((told and told.default) or '').lower()}"
    assert default not in found or default in plain.alike, f"two runs of one thing are told apart\n{text}"
    for variant in ONE_PACKET.keys() & found.keys():
        kept = [share for run in found[variant] for share in run.windows[:1]]
        assert kept == pytest.approx([ONE_PACKET[variant]] * len(variants.CAMPAIGNS), abs=0.05), text

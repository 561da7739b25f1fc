"""What the report docs/paper says of congestion controls."""

from __future__ import annotations

from scripts.paper.variants import algorithm_or_implementation
from tests.results_builder import SATLOSS
from tests.scripts.paper.campaigns import variants


def test_algorithm_or_implementation() -> None:
    bound = (6 + sum(SATLOSS.file_sizes) * 8 / SATLOSS.timeout / 1e6) / 2
    page = "\n".join(algorithm_or_implementation(variants()))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if "quic" in line or "quinn" in line
    ]
    assert ["quinn", "", "2.00", "8.00"] in rows
    assert ["picoquic", "1.00", "", f"≤ {bound:.2f}"] in rows
    assert f"has {min(bound, 4):.1f} to {max(bound, 4):.1f} times the goodput of its slowest" in page
    assert f"With BBR, the fastest implementation has {8 / bound:.1f} times" in page
    assert "With CUBIC" not in page

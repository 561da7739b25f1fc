"""What a night leaves on the website, by the commands of scripts/nightly alone."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from quicsat.cli.main import main
from quicsat.plots import discovery
from quicsat.plots.base import Drawing, Plot
from quicsat.plots.render import file_name
from tests.scripts.test_nightly import calls, checkout, night
from tests.site.builder import ROOT, on_disk, small

__all__ = ["checkout"]


def save(plot: Plot, drawing: Drawing, target: Path, formats: Sequence[str]) -> list[Path]:
    """Files instead of pictures, which take half a second each."""
    paths = [target / file_name(plot, drawing, form) for form in formats]
    for path in paths:
        path.write_text(drawing.title)
    return paths


def test_the_site_of_a_night_shows_all_kinds_of_figures(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "save", save)
    night(checkout)
    made = {words[0]: words for words in calls(checkout)}
    directory = Path(made["plot"][1])
    shutil.rmtree(directory)
    on_disk(directory, small())
    for name in ("plot", "site"):
        assert main(ROOT, made[name], discovery.draw, discovery.headings) == 0
    [index] = (checkout / "site" / "runs").glob("*/figures/index.html")
    campaign, page = index.parent.parent, index.read_text()
    for name in ("heatmap-SAT.svg", "violin-SAT.svg", "offset-picoquic_quiche-SAT.svg", "transports.svg"):
        assert f'<img src="{name}"' in page
        assert (campaign / "figures" / name).is_file()
    assert "Others" not in page
    [cell] = campaign.glob("p/picoquic/quiche/sat/index.html")
    assert "figures/index.html#offset-picoquic_quiche-SAT" in cell.read_text()

"""Which implementations are built from the newest releases of their packages."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from quicsat.config.loader import load_implementations
from quicsat.docker import provenance
from quicsat.images import releases
from quicsat.images.archives import Releases
from quicsat.images.build_recipes import recipe_of
from quicsat.images.releases import ReleaseState, pinned_version, releases_of
from quicsat.model.errors import MachineError
from quicsat.model.package import Package

ROOT = Path(__file__).resolve().parents[2]
KNOWN = load_implementations(ROOT / "implementations.json")
BUILT = [each.name for each in KNOWN.values() if each.build]


@pytest.mark.parametrize("name", BUILT)
def test_each_image_that_is_built_names_its_package_and_pins_it_as_its_label_states(name: str) -> None:
    implementation = KNOWN[name]
    recipe = recipe_of(ROOT, implementation)
    source = provenance.labels_of(recipe.folder / "Dockerfile", recipe.arguments)[provenance.SOURCE]
    assert source.startswith(f"{implementation.package.registry} ")
    assert pinned_version(ROOT, implementation) in source


def test_costs_that_were_measured_with_another_version_are_known() -> None:
    quinn = KNOWN["quinn"]
    built = provenance.labels_of(ROOT / "endpoints/quinn/Dockerfile")[provenance.VERSION]
    versions = ["", built, "0.1"]
    with_costs = [replace(quinn, cpu_cost=replace(quinn.cpu_cost, version=each)) for each in versions]
    assert [releases.costs_of_another(ROOT, each) for each in with_costs] == ["", "", "0.1"]


def test_versions_are_current_outdated_or_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    day = date(2026, 1, 2)

    def look_up(wanted: Iterable[tuple[Package, str]]) -> dict[object, object]:
        answers: dict[object, object] = {}
        for package, pinned in wanted:
            same = Releases(pinned, {pinned: day})
            newer = Releases("99.0", {"99.0": day})
            answers[package, pinned] = {"quinn": same, "quiche": newer}.get(package.name, MachineError("no answer"))
        return answers

    monkeypatch.setattr(releases, "look_up", look_up)
    found = {each.name: each for each in releases_of(ROOT, KNOWN.values())}
    assert set(found) == set(BUILT)
    assert (found["quinn"].state, found["quinn"].released) == (ReleaseState.CURRENT, day)
    quiche = found["quiche"]
    assert (quiche.state, quiche.newest, quiche.released, quiche.newest_released) == ("outdated", "99.0", None, day)
    assert (found["tquic"].state, found["tquic"].fault) == (ReleaseState.UNKNOWN, "no answer")

"""Runs that were measured with two builds of the virtual machine."""

from __future__ import annotations

from dataclasses import replace

from interop.model.results import ImageFacts, ResultSet
from interop.model.units import MBPS
from scripts.paper.virtual_time_images import BESIDE, virtual_time_images
from tests.results_builder import result_set, runs


def with_image(tag: str, *rates: float) -> ResultSet:
    """A run with each client."""
    found = [run for number, rate in enumerate(rates) for run in runs(rate * MBPS, client=f"c{number}")]
    results = result_set(found, clients=tuple(f"c{number}" for number in range(len(rates))))
    image = ImageFacts(f"quicsat/virtual-time:{tag}", "sha256:0")
    return replace(results, manifest=replace(results.manifest, images={"virtual-time": image}))


def test_runs_with_both_images_are_compared() -> None:
    parts = {"matrix": with_image("a", 1, 2, 4), "windows": with_image("b", 1, 2.1), "real": result_set()}
    [told] = virtual_time_images(parts.items())
    none = " None has aioquic or kwik, whose runs differ most, as server or client."
    whose = f"They cover the server picoquic only.{none}{BESIDE}"
    assert told == (
        "- **Virtual machine:** The campaign `matrix` used the image `quicsat/virtual-time:a`; the campaign `windows` "
        "used the image `quicsat/virtual-time:b`. 2 successful runs took place with both images; in 1 of them, goodput "
        f"is exactly the same; the largest difference is 5 %. {whose}"
    )
    [told] = virtual_time_images({**parts, "windows": with_image("b", 1, 2)}.items())
    assert (
        f" 2 successful runs took place with both images; in all 2 runs, goodput is exactly the same. {whose}" in told
    )
    [told] = virtual_time_images({**parts, "windows": with_image("b", 1)}.items())
    assert f" 1 successful run took place with both images; in this run, goodput is exactly the same. {whose}" in told
    [told] = virtual_time_images({**parts, "windows": with_image("b", 1.1)}.items())
    assert "; in none of them, goodput is exactly the same; the largest difference is 10 %." in told


def test_changed_endpoints_are_not_compared() -> None:
    [told] = virtual_time_images({"matrix": with_image("a", 1), "quic-go-windows": with_image("b", 2)}.items())
    assert told.endswith("campaign `quic-go-windows` used the image `quicsat/virtual-time:b`.")


def test_one_image_needs_no_words() -> None:
    assert list(virtual_time_images({"matrix": with_image("a", 1), "windows": with_image("a", 1)}.items())) == []


def test_seeds_of_a_part_with_both_images_are_named() -> None:
    def with_seed(seed: int, tag: str) -> ResultSet:
        found = with_image(tag, seed)
        return replace(found, manifest=replace(found.manifest, seed=seed))

    campaigns = [("matrix", with_seed(1, "a")), ("spread", with_seed(2, "a"))]
    campaigns += [("spread", with_seed(seed, "b")) for seed in (3, 4)]
    [told] = virtual_time_images(campaigns)
    assert "The campaigns `matrix` and `spread` with seed 2 used the image `quicsat/virtual-time:a`; the" in told
    assert "campaign `spread` with seeds 3 and 4 used the image `quicsat/virtual-time:b`." in told

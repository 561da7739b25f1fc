"""`confirm` at the real engine: a finding that nothing explains is measured in real time, and denied."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.results import ImageFacts
from quicsat.model.units import MBPS
from quicsat.results.store import load, write_result_json
from tests.engine.test_command import call
from tests.results_builder import SAT, result_set, runs, virtual

CHANGED = "quicsat/test-confirm:latest"
QUICK = replace(
    SAT,
    name="quick",
    abbreviation="QU",
    link=EmulatedLink("simple-p2p", Direction(0.01, 20 * MBPS, 100), Direction(0.01, 20 * MBPS, 100)),
    file_sizes=(300_000,),
    timeout=30.0,
)
CLIENTS = "quic-go", "aioquic"


def store(place: Path, images: Mapping[str, str], goodput: float) -> Path:
    """A campaign in virtual time."""
    place.mkdir()
    results = [
        each
        for number, client in enumerate(CLIENTS)
        for each in runs(*(goodput + 1e3 * (n + number) for n in range(10)), server="quic-go", client=client,
                         test_case=QUICK.name)
    ]  # fmt: skip
    facts = {name: ImageFacts(name, identity) for name, identity in images.items()}
    found = result_set(results, servers=("quic-go",), clients=CLIENTS, test_cases=(QUICK,), images=facts)
    write_result_json(place, virtual(found))
    return place


def test_a_loss_that_real_time_does_not_have_is_denied(
    daemon: Daemon, image_ids: Mapping[str, str], tmp_path: Path
) -> None:
    """Virtual time found a loss of half of the goodput, and the image has only another label."""
    context = pack({"Dockerfile": f"FROM {image_ids['quic-go']}\nLABEL confirm=1\n".encode()})
    changed = DaemonImages(daemon).build(context, CHANGED, {}, lambda _line: None)
    images = {name: image_ids[name] for name in ("simulator", *CLIENTS)}
    before = store(tmp_path / "before", images, 8e6)
    after = store(tmp_path / "after", images | {"quic-go": changed.id}, 4e6)
    status, out, err = call("confirm", before, after, "--format", "csv")
    assert status == 0, err
    assert "not confirmed" in out
    results = load(tmp_path / "after-confirm/look-1").result_set
    assert results.manifest.clock is Clock.REAL
    used = {each.server: each.evidence.images["server"] for each in results.results}
    assert used == {"quic-go": changed.id, "quic-go:base": image_ids["quic-go"]}
    assert len(results.results) == 4 * 2 * 2

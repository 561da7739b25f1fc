"""How each run of a campaign is made: the options and images that campaign, worker and run share."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from quicsat.model.clock import Clock
from quicsat.model.implementation import Implementation
from quicsat.model.perturbation import NONE, Amplitudes
from quicsat.model.results import PARAMETERS, ImageFacts, Manifest


@dataclass(frozen=True)
class RunConfig:
    """What holds for every run of a campaign, on every worker."""

    images: Mapping[str, ImageFacts] = field(default_factory=dict)
    """By the name of the implementation, and of an image of our own, such as ``simulator`` or ``link-tools``."""
    builds: Mapping[Implementation, ImageFacts] = field(default_factory=dict)
    """Images of implementations of which several builds are measured at the same time, instead of those by name."""
    qlog: bool = True
    """Endpoints write qlog files."""
    keep_files: bool = False
    """Keep the offered and the downloaded files of runs that do not succeed."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Values of ``PARAMETERS`` by name; a missing or empty one is not set."""
    clock: Clock = Clock.REAL
    """The clock of endpoints, emulated links and deadlines."""
    cpu_cost_factor: float = 1.0
    """Of the CPU costs of all programs; without effect in real time."""
    amplitudes: Amplitudes = NONE
    """How much repetitions differ; only in virtual time."""
    placebo: bool = False
    """As in :class:`quicsat.model.results.Manifest`."""

    def image_of(self, implementation: Implementation) -> ImageFacts:
        """The image that an endpoint is started from."""
        return self.builds.get(implementation) or self.images[implementation.name]

    @property
    def image_ids(self) -> dict[str, str]:
        """Image id by name."""
        return {name: image.id for name, image in self.images.items()}


def stored_run_config(manifest: Manifest) -> RunConfig:
    """What the manifest of a campaign stores; versions that stored less had the defaults."""
    return RunConfig(
        images=manifest.images,
        parameters=manifest.parameters or {},
        clock=manifest.clock,
        cpu_cost_factor=1.0 if manifest.cpu_cost_factor is None else manifest.cpu_cost_factor,
        amplitudes=manifest.amplitudes,
        placebo=manifest.placebo,
        qlog=manifest.options.get("qlog", True),
        keep_files=manifest.options.get("keep_files", False),
    )


def environment_parameters() -> dict[str, str]:
    """``PARAMETERS`` from the environment of this process; the empty text for one that is not set."""
    return {name: os.environ.get(name, "") for name in PARAMETERS}

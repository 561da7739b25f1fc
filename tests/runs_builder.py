"""Campaign directories with series of transfers that never took place: what figures over runs are drawn from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from quicsat.model.objective import Objective
from quicsat.model.results import Measurement, ResultSet
from quicsat.model.run import RunKey
from quicsat.model.test_case import TestCase
from quicsat.model.units import MIB
from quicsat.report.plot_request import CampaignResults
from quicsat.traces.series import save
from tests.results_builder import SAT, result_set, runs
from tests.series_builder import Transfer, series

SHORT = replace(SAT, file_sizes=(100_000,))


def transfers(repetitions: int, size: int = 100_000, piece: int = 1000, lost: float = 0.02) -> Sequence[Transfer]:
    """Repetitions at slightly different rates, of which the first is the fastest, each with its own losses."""
    count = -(-size // piece)
    found = []
    for number in range(repetitions):
        rng = np.random.default_rng(number)
        gone = rng.choice(count, int(lost * count), replace=False).tolist()
        rate = (1 - 0.05 * number) * (1e6 if size < MIB else 8e6)
        found.append(Transfer(size=size, piece=piece, rate=rate, lost=gone))
    return found


def campaign(
    place: Path,
    pairs: Sequence[tuple[str, str]] = (("quic-go", "aioquic"),),
    repetitions: int = 3,
    size: int = 100_000,
    values: Mapping[str, float] | None = None,
    objectives: tuple[Objective, ...] = (),
) -> CampaignResults:
    """Results and series of these pairs (server, client) in ``sat``, all alike; ``values``: numbers of every run."""
    piece = 1000 if size < MIB else 1200
    for server, client in pairs:
        for number, transfer in enumerate(transfers(repetitions, size, piece), start=1):
            directory = place / RunKey(server, client, "sat", number).path
            directory.mkdir(parents=True)
            save(series(transfer), directory)
    case = replace(SAT, file_sizes=(size,), objectives=objectives)
    made = results(pairs, repetitions, case)
    told = tuple(
        replace(
            each, measurement=Measurement({**(each.measurement.values if each.measurement else {}), **(values or {})})
        )
        for each in made.results
    )
    return CampaignResults("made", replace(made, results=told), place)


def results(pairs: Sequence[tuple[str, str]], repetitions: int, case: TestCase = SHORT) -> ResultSet:
    """That all succeeded."""
    servers, clients = (tuple(dict.fromkeys(pair[place] for pair in pairs)) for place in (0, 1))
    found = [each for server, client in pairs for each in runs(*[1e6] * repetitions, server=server, client=client)]
    made = result_set(found, servers=servers, clients=clients, repetitions=repetitions)
    return replace(made, manifest=replace(made.manifest, test_cases=(replace(case, repetitions=repetitions),)))

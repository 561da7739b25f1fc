"""Models of the CPU time of a run, judged on runs with a partner, or over a link, from which nothing was fitted.

``python -m bench.cost_models DIR...`` prints, for the servers and the clients of campaigns in real time, the median of
the relative errors of each model, and the median of these over all implementations.
"""

# ruff: noqa: T201 - a script

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.model.implementation import Role
from quicsat.model.results import ResultSet
from quicsat.results.store import load
from quicsat.statistics import cost_fit
from quicsat.statistics.cost_fit import CostSample, cost_samples, non_negative


@dataclass(frozen=True)
class Run:
    """A run with what other models need."""

    sample: CostSample
    size: int
    """Bytes of the files."""
    time: float
    """Seconds of the transfer."""


Causes = Callable[[Run], Sequence[float]]
MODELS: dict[str, Causes] = {
    "bytes": lambda run: (run.size,),
    "packets sent": lambda run: (run.sample.sent,),
    "packets sent and received": lambda run: (run.sample.sent, run.sample.received),
    "sent, received and time": lambda run: (run.sample.sent, run.sample.received, run.time),
    "system calls": lambda run: (run.sample.calls,),
}
"""What the CPU time is explained by, besides a constant, and nothing else."""


def runs_of(campaigns: Sequence[ResultSet], name: str, role: Role) -> list[Run]:
    """The runs from which a model can be fitted."""
    found = []
    for campaign in campaigns:
        sizes = {case.name: sum(case.file_sizes) for case in campaign.manifest.test_cases}
        for result in campaign.results:
            for sample in cost_samples([replace(campaign, results=(result,))], name, role):
                found.append(Run(sample, sizes[result.test_case], result.evidence.transfer_time))
    return found


def errors(causes: Causes, fitted: Sequence[Run], judged: Sequence[Run]) -> Floats:
    """Relative errors of some runs, from a fit to others with relative errors that are as small as possible."""
    table = [np.array([(1, *causes(run)) for run in some], dtype=np.float64) for some in (fitted, judged)]
    cpu, measured = (np.array([run.sample.cpu for run in some]) for some in (fitted, judged))
    costs = non_negative(table[0] / cpu[:, None], np.ones(len(cpu)))
    found: Floats = np.abs(table[1] @ costs - measured) / measured
    return found


def own_errors(fitted: Sequence[Run], judged: Sequence[Run]) -> Floats:
    """The same of the model of ``calibrate``."""
    return cost_fit.errors([run.sample for run in fitted], [run.sample for run in judged])


def left_out(
    find: Callable[[Sequence[Run], Sequence[Run]], Floats], runs: Sequence[Run], of: Callable[[Run], str]
) -> float:
    """Median error of all runs, each group of them predicted from the others."""
    found = [
        find([run for run in runs if of(run) != group], [run for run in runs if of(run) == group])
        for group in sorted({of(run) for run in runs})
    ]
    return float(np.median(np.concatenate(found)))


def main() -> None:
    """Print a line per role and model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaigns", nargs="+", type=Path)
    campaigns = [load(place).result_set for place in parser.parse_args().campaigns]
    names = sorted({name for each in campaigns for name in (*each.manifest.servers, *each.manifest.clients)})
    for role in Role:
        runs = [found for name in names if len(found := runs_of(campaigns, name, role)) >= 2 * cost_fit.LEAST_RUNS]
        models = {name: lambda fitted, judged, causes=causes: errors(causes, fitted, judged)
                  for name, causes in MODELS.items()} | {"calibrate": own_errors}  # fmt: skip
        for name, find in models.items():
            partners, links = (
                median(left_out(find, each, of) for each in runs)
                for of in (lambda run: run.sample.partner, lambda run: run.sample.link)
            )
            print(f"{role:6}  {name:26}  partner left out {partners:6.1%}  link left out {links:6.1%}  ({len(runs)})")


if __name__ == "__main__":
    main()

"""What the paper concludes about implementations, and whether these measurements lead to the same conclusion."""

import numpy as np

from paper.data_set import DataSet, Frame
from paper.goodput import always
from paper.numbers import Numbers
from paper.published import BETTER_AS
from paper.resampling import RESAMPLES, SEED

WELL = 0.9
"""Share of the largest mean from which on an implementation counts as performing well."""
CLAIMS = tuple(
    (name, one, one == role)
    for name, role in BETTER_AS.items()
    for one in (role, "client" if role == "server" else "server")
)
"""Implementation, role, and whether it performs well according to the paper (section IV-B)."""


def claims(data: DataSet, numbers: Numbers) -> None:
    """A row for each claim, link and queue: the share of the fastest mean, its interval, and the verdict."""
    rows = []
    for name, role, well in CLAIMS:
        for queue, part in (("25 packets", "matrix"), ("as in the simulator of the paper", "queues")):
            for link, runs in data.part(part).groupby("link", sort=False):
                share, low, high = of_the_fastest(runs, name, role)
                decided = "agrees" if (low >= WELL) is well else "differs"
                rows.append({
                    "implementation": name, "role": role, "paper": "performs well" if well else "does not perform well",
                    "queue": queue, "link": link, "share of the fastest": share, "low": low, "high": high,
                    "verdict": "undecided" if low < WELL <= high else decided,
                })  # fmt: skip
    numbers.table("claims", rows)
    for verdict in ("agrees", "differs", "undecided"):
        numbers.add(f"claims.{verdict}", sum(row["verdict"] == verdict for row in rows))
    matrix = data.part("matrix")
    neqo = matrix[(matrix.client == "neqo") & (matrix.link == "terrestrial")]
    numbers.add("claims.neqo", int(neqo.succeeded.sum()))
    numbers.add("claims.neqo.of", len(neqo))


def of_the_fastest(runs: Frame, name: str, role: str) -> tuple[float, float, float]:
    """Share of the largest mean goodput that an implementation reaches in a role, and its 95 % bootstrap interval.

    The bootstrap draws partners; the fastest implementation is the same in all resamples. Servers: all runs, all
    clients. Clients: runs of the servers that always succeeded.
    """
    these = runs if role == "server" else always(runs)
    partner = "client" if role == "server" else "server"
    table = these.pivot_table(index=role, columns=partner, values="goodput_so_far", aggfunc="mean", sort=False)
    means = these.groupby(role).goodput_so_far.mean()
    values, names = table.to_numpy(), list(table.index)
    fastest = int(np.argmax(np.nanmean(values, axis=1)))
    drawn = np.random.default_rng(SEED).integers(0, values.shape[1], (RESAMPLES, values.shape[1]))
    resampled = np.nanmean(values[:, drawn], axis=2)
    low, high = np.quantile(resampled[names.index(name)] / resampled[fastest], (0.025, 0.975))
    return float(means[name] / means.max()), float(low), float(high)

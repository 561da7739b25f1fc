"""Sweeps: one parameter of sat at a time, each implementation with itself."""

from paper.data_set import DataSet
from paper.numbers import Numbers, Unit
from quicsat.model.emulated_link import loss_share
from quicsat.statistics.overview import by_family


def sweeps(data: DataSet, numbers: Numbers) -> None:
    """Goodput by swept value, from one end of each sweep to the other, and what other seeds change."""
    runs, rows = data.part("sweeps"), []
    for cases in by_family(data.manifest("sweeps").test_cases).values():
        values = [case.family.values[0] for case in cases if case.family]
        key = values[0].key
        for case, value in zip(cases, values, strict=True):
            rows += [{
                "swept": key, "value": value.text, "server and client": run.server,
                "goodput, or so far [bit/s]": run.goodput_so_far, "timed out": run.timed_out,
                "goodput, first to last byte [bit/s]": run.stream_goodput, "completion time [s]": run.completion_time,
                "lost by the link [packets]": run.forward_loss_drops,
            } for run in runs[runs.test_case == case.name].itertuples()]  # fmt: skip
        name = f"sweep.{key.replace(' ', '_')}"
        first, last = (runs[runs.test_case == case.name].set_index("server").goodput_so_far
                       for case in (cases[0], cases[-1]))  # fmt: skip
        ratio = (last / first).dropna()
        numbers.span(name, ratio, Unit.RATIO)
        numbers.add(f"{name}.least", ratio.idxmin(), Unit.TEXT)
        numbers.add(f"{name}.most", ratio.idxmax(), Unit.TEXT)
        numbers.add(f"{name}.first", values[0].text, Unit.TEXT)
        numbers.add(f"{name}.last", values[-1].text, Unit.TEXT)
    numbers.table("sweeps", rows)
    _other_seeds(data, numbers)


def _other_seeds(data: DataSet, numbers: Numbers) -> None:
    """How far runs over sat differ that are in several sweeps and in the matrix, each with another seed."""
    sat = next(case for case in data.manifest().test_cases if case.name == "sat")
    names = {
        case.name
        for case in data.manifest("sweeps").test_cases
        if case.emulated.with_both(loss=None) == sat.emulated
        and loss_share(case.emulated.forward.loss) == 0
        and case.file_sizes == sat.file_sizes
    }
    matrix, swept = data.part("matrix"), data.part("sweeps")
    spread = {}
    for name in dict.fromkeys(swept.server):
        values = list(swept[(swept.server == name) & swept.test_case.isin(names)].goodput)
        values += list(matrix[(matrix.server == name) & (matrix.client == name) & (matrix.link == "sat")].goodput)
        spread[name] = max(values) / min(values) - 1
    most, *rest = sorted(spread, key=spread.__getitem__, reverse=True)
    numbers.add("sweep.seeds.most.server", most, Unit.TEXT)
    numbers.add("sweep.seeds.most", spread[most], Unit.SHARE)
    numbers.add("sweep.seeds.others", spread[rest[0]], Unit.SHARE)

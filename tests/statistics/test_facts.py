"""Facts as conditions: which runs they select, and one sentence for each that is none."""

from dataclasses import replace

import pytest

from quicsat.model.errors import InputError
from quicsat.model.negotiated import Negotiated
from quicsat.model.results import Measurement, RunResult
from quicsat.statistics.facts import read_condition, where
from quicsat.statistics.samples import samples
from tests.results_builder import result_set, run_result


def run(repetition: int, negotiated: Negotiated | None) -> RunResult:
    found = run_result(1e6, repetition=repetition)
    return replace(found, measurement=Measurement({"goodput": 1e6}, negotiated=negotiated))


RESULTS = result_set(
    [
        run(1, Negotiated(1, 0x1301, "h3", client={"initial_max_data": 65536, "max_ack_delay": 20}, server={})),
        run(2, Negotiated(0x6B3343CF, 0x1303, "hq-interop", client={"initial_max_data": 1048576}, server=None)),
        run(3, None),
        run_result(None, repetition=4),
    ],
    repetitions=4,
)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], [1, 2, 3, 4]),
        (["cipher=aes-128-gcm"], [1]),
        (["version=QUIC v2"], [2]),
        (["alpn=h3"], [1]),
        (["client.initial_max_data=65536"], [1]),
        (["client.initial_max_data>=65536"], [1, 2]),
        (["client.initial_max_data>=65537"], [2]),
        (["client.initial_max_data<=65536"], [1]),
        (["client.max_ack_delay=25"], [2]),
        (["server.max_ack_delay=25"], [1]),
        (["client.initial_max_data>=1", "cipher=ChaCha20-Poly1305"], [2]),
        (["client.initial_max_data=many"], []),
    ],
)
def test_conditions(conditions: list[str], expected: list[int]) -> None:
    kept = where(RESULTS, [read_condition(text) for text in conditions])
    assert [result.repetition for result in kept.results] == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("share.recovery>=25", [1]),
        ("share.recovery<=24", [2, 3]),
        ("share.pacing=75", [1]),
        ("share.tail>=7.6", [3]),
        ("share.tail>=7.7", []),
        ("share.tail<=7.6", [1, 2]),
        ("share.tail=8", [3]),
        ("share.tail=7.7", [3]),
        ("share.tail=8.0", []),
        ("share.tail=many", []),
    ],
)
def test_shares_of_the_time(condition: str, expected: list[int]) -> None:
    spent: list[dict[str, float]] = [
        {"time_in_recovery": 1.0, "time_in_pacing": 3.0},
        {"time_in_pacing": 3.0},
        {"time_in_tail": 1.0, "time_in_pto": 12.0},
        {},
    ]
    found = [replace(run(number, None), measurement=Measurement(values)) for number, values in enumerate(spent, 1)]
    kept = where(result_set(found, repetitions=4), [read_condition(condition)])
    assert [result.repetition for result in kept.results] == expected


def test_pairs_and_attempts_without_a_chosen_run_are_left_out() -> None:
    chosen = Negotiated(1, 0x1301, "h3", client=None, server=None)
    found = [
        replace(run_result(1e6, server=server, test_case=case), measurement=Measurement({}, negotiated=facts))
        for server, case, facts in (
            ("a", "sat", chosen),
            ("a", "satl", None),
            ("b", "sat", None),
            ("b", "satl", chosen),
        )
    ]
    all_runs = result_set(found, servers=("a", "b"))
    both = replace(all_runs, earlier=tuple(replace(each, attempt=0) for each in found))
    kept = where(both, [read_condition("alpn=h3")])
    assert {case: [each.server for each in samples(kept, case)] for case in ("sat", "satl")} == {
        "sat": ["a"], "satl": ["b"]
    }  # fmt: skip
    assert [each.key for each in kept.earlier] == [found[0].key, found[3].key]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("cipher", "is no condition"),
        ("ciphre=x", "Did you mean cipher?"),
        ("share.time_in_recovery>=30", "Did you mean share.recovery?"),
        ("time_in_pto<=30", "Did you mean share.pto?"),
        ("client.max_ack_delay>=x", "needs a number"),
        ("share.tail>=3,4", "needs a number"),
    ],
)
def test_what_is_no_condition(text: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault.replace("?", "[?]")):
        read_condition(text)

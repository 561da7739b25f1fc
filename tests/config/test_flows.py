"""Words of further flows, and test cases that have them."""

from dataclasses import replace

import pytest

from quicsat.config.flows import parse_flow
from quicsat.model.emulated_link import Rebind
from quicsat.model.family import Family
from quicsat.model.flow import Flow
from quicsat.model.gateways import PEPS
from quicsat.model.names import is_test_case
from quicsat.model.test_case import TestCase, flow_fault, with_flows
from tests.results_builder import SAT, SATLOSS

TCP = Flow("nginx-tcp", "curl", 2.0)


@pytest.mark.parametrize(
    ("text", "flow"),
    [
        ("same", Flow()),
        ("same@500ms", Flow(start=0.5)),
        ("nginx-tcp/curl@2s", TCP),
        (" nginx-tcp / curl @ 2 s ", TCP),
        ("picoquic:bbr/quic-go", Flow("picoquic:bbr", "quic-go")),
        ("quinn@0.11.5/curl", Flow("quinn@0.11.5", "curl")),
        ("quinn@0.11.5:bbr/aioquic@1.2.0", Flow("quinn@0.11.5:bbr", "aioquic@1.2.0")),
        ("quinn@0.11.5/aioquic@1.2.0@2s", Flow("quinn@0.11.5", "aioquic@1.2.0", 2.0)),
    ],
)
def test_words(text: str, flow: Flow) -> None:
    assert parse_flow(text) == flow
    assert parse_flow(flow.words) == flow


@pytest.mark.parametrize(
    "text", ["", "quic-go", "quic-go/", "/curl", "a/b/c", "../x/y", "same@2", "same@-1s", "same@2h"]
)
def test_faulty_words(text: str) -> None:
    with pytest.raises(ValueError):
        parse_flow(text)


def test_names_of_test_cases_with_flows() -> None:
    assert is_test_case(with_flows(SAT, (Flow("quinn@0.11.5", "aioquic@1.2.0"),)).name)
    made = with_flows(SAT, (TCP, Flow("picoquic:bbr", "quic-go")))
    assert made.name == "sat~nginx-tcp_curl_2s~picoquic+bbr_quic-go"
    assert made.abbreviation == "SAT~nginx-tcp_curl_2s~picoquic+bbr_quic-go"
    assert is_test_case(made.name)
    assert (made.random_name, made.flow_count) == ("sat", 3)
    assert made.description.endswith(", beside nginx-tcp/curl@2s and picoquic:bbr/quic-go")
    member = with_flows(replace(SAT, family=Family("lossy", "LOS", ())), (Flow(),))
    assert member.family == Family("lossy~same", "LOS~same", ())


@pytest.mark.parametrize("name", ["sat~", "sat~/x", "sat~..", "~same", "sat~Same", "sat" + "~same" * 6])
def test_names_that_no_test_case_has(name: str) -> None:
    assert not is_test_case(name)


FAULTY: list[tuple[TestCase, str]] = [
    (replace(SAT, flows=(TCP,) * 6), "7 flows are too many"),
    (replace(SAT, link=replace(SAT.emulated, rebind=Rebind(1)), flows=(TCP,)), "cannot pass a NAT"),
]


@pytest.mark.parametrize(("case", "fault"), FAULTY)
def test_test_cases_that_cannot_have_flows(case: TestCase, fault: str) -> None:
    assert fault in flow_fault(case)
    with pytest.raises(ValueError, match=fault):
        with_flows(replace(case, flows=()), case.flows)


def test_flows_are_given_once() -> None:
    assert flow_fault(replace(SATLOSS, flows=(TCP,))) == ""
    assert flow_fault(replace(SAT, link=replace(SAT.emulated, pep=PEPS["A"]), flows=(TCP,) * 5)) == ""
    with pytest.raises(ValueError, match="of its own"):
        with_flows(with_flows(SAT, (TCP,)), (TCP,))

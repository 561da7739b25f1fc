"""Each cause is told of a run that has it, with the packets that prove it, and of no other."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from quicsat.analysis.causes import FailureContext, explain
from quicsat.analysis.close_reasons import code_name, is_error
from quicsat.analysis.link_events import LinkEvent, LinkHistory
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import Cause
from quicsat.traces.columns import Connection, Form, Frame, Message
from quicsat.traces.packet_matching import match_packets
from quicsat.traces.quic_series import QuicTracePair, series
from tests.quic_builder import Row, columns, datagram_columns

DELAY = 0.1
PARAMETERS: dict[str, int | str] = {
    "initial_max_data": 1_000_000, "initial_max_stream_data_bidi_local": 1_000_000, "max_idle_timeout": 30_000,
}  # fmt: skip


@dataclass
class Sent:
    """A packet at its sender."""

    time: float
    from_server: bool
    row: dict[str, object]
    lost: bool = False


def client(time: float, *, lost: bool = False, **row: object) -> Sent:
    return Sent(time, False, row, lost)


def server(time: float, *, lost: bool = False, **row: object) -> Sent:
    return Sent(time, True, row, lost)


def scene(
    *sent: Sent, size: int = 10_000, parameters: dict[str, int | str] | None = None, by_us: bool = True,
    duration: float = 0.0, others: Sequence[dict[str, int | str]] = (), link: LinkHistory | None = None,
) -> FailureContext:  # fmt: skip
    """Both traces of these packets; ``others`` are the client's transport parameters of connections 1, 2, ..."""
    both: list[list[tuple[float, Row, int]]] = [[], []]
    for number, each in enumerate(sent):
        row = {"number": number, **each.row}
        both[each.from_server].append((each.time, Row(each.time, each.from_server, **row), number))  # type: ignore[arg-type]
        if not each.lost:
            late = each.time + DELAY
            both[not each.from_server].append((late, Row(late, each.from_server, **row), number))  # type: ignore[arg-type]
    facts = [Connection("", (), 0x1301, "", "", False, False, told, {}) for told in (parameters or PARAMETERS, *others)]
    traces, datagrams = [], []
    for side in both:
        side.sort(key=lambda entry: entry[0])
        traces.append(columns(*(row for _, row, _ in side), connections=facts))
        datagrams.append(datagram_columns([(time, row.from_server, number) for time, row, number in side]))
    forward, back = (
        match_packets(datagrams[1], datagrams[0], forward=True),
        match_packets(datagrams[0], datagrams[1], forward=False),
    )
    trace_pair = QuicTracePair(traces[0], traces[1], datagrams[0], datagrams[1], forward, back, one_clock=True)
    history = link or LinkHistory()
    return FailureContext(trace_pair, series(trace_pair, Protocol.HQ), size, 20e6, by_us, duration, link=history)


HELLO = client(0, form=Form.INITIAL, messages=[(Message.CLIENT_HELLO, 300)])
GREETING = server(0.1, form=Form.INITIAL, messages=[(Message.SERVER_HELLO, 90)])
FINISHED = server(0.11, form=Form.HANDSHAKE, messages=[(Message.FINISHED, 32)])
REQUEST = client(0.25, frames=[(0, 0, 10)], eliciting=True)
START = (HELLO, GREETING, FINISHED, REQUEST)


def response(count: int, begin: float = 0.4, every: float = 0.01, lost: Sequence[int] = ()) -> list[Sent]:
    return [server(begin + n * every, lost=n in lost, frames=[(0, 1000 * n, 1000)]) for n in range(count)]


def told(made: FailureContext, cause: Cause) -> str:
    found, sentence = explain(made)
    assert found is cause, sentence
    assert sentence.endswith(".")
    return sentence


def test_nobody_or_only_the_client_sent() -> None:
    told(scene(), Cause.NOTHING_SENT)
    only = [client(n, lost=n == 1, form=Form.INITIAL) for n in range(3)]
    assert "sent 3 packets, 2 reached the server" in told(scene(*only), Cause.SERVER_SILENT)
    lost = [client(n, lost=True, form=Form.INITIAL) for n in range(3)]
    assert "lost all 3 packets of the client" in told(scene(*lost), Cause.LINK_LOSS)


# ---- the link -------------------------------------------------------------------------------

REBINDING = LinkEvent(Cause.NAT_REBINDING, 0.5, 0.5, "The NAT changed its mappings")
HISTORY = LinkHistory((REBINDING,), "4 at the NAT")


def unheard(count: int = 4) -> list[Sent]:
    """Packets of the server that are lost, a second apart."""
    return [server(1.0 + n, lost=True, frames=[(0, 6000, 1000)]) for n in range(count)]


def test_what_the_link_did_comes_before_what_the_endpoints_did() -> None:
    """Congestion control, a server that stopped or an idle time-out after a rebinding: the link's."""
    repeats = scene(*START, *response(6), *unheard(), duration=9.0, link=HISTORY)
    sentence = told(repeats, Cause.NAT_REBINDING)
    assert sentence.startswith("The NAT changed its mappings after 500.0 ms. The transfer stopped after 550.0 ms.")
    assert (
        "lost 4 of 4 packets of the server and 0 of 0 of the client; in the whole run, it dropped 4 at the" in sentence
    )
    told(scene(*START, *response(6), *unheard(1), client(5.0), link=HISTORY), Cause.NAT_REBINDING)
    told(scene(*START, *response(6), *unheard(1), duration=60.0, link=HISTORY), Cause.NAT_REBINDING)
    assert explain(scene(*START, *response(6), *unheard(), client(6.0)))[0] is Cause.CONGESTION_CONTROL
    assert explain(scene(*START, *response(6), *unheard(5), client(6.0)))[0] is Cause.LINK_LOSS


def test_a_change_in_the_handshake() -> None:
    outage = LinkHistory((LinkEvent(Cause.LINK_OUTAGE, 0.3, 9.0, "The link delivered nothing for 8.7 s"),))
    hellos = [client(1.0 + n, lost=True, form=Form.INITIAL) for n in range(3)]
    told(scene(HELLO, GREETING, *hellos, link=outage), Cause.LINK_OUTAGE)
    told(scene(HELLO, GREETING, *hellos), Cause.HANDSHAKE_INCOMPLETE)


def test_an_endpoint_that_closes_at_once_or_does_not_go_on_is_the_cause() -> None:
    close = server(0.6, signals=[(Frame.CLOSE, 0x0A, 8, "")])
    told(scene(*START, *response(6), *unheard(1), close, link=HISTORY), Cause.CLOSED_BY_SERVER)
    late = server(8.0, signals=[(Frame.CLOSE, 0x0A, 8, "")])
    told(scene(*START, *response(6), *unheard(4), late, link=HISTORY), Cause.NAT_REBINDING)
    again = [each for n in range(6) for each in (server(3.0 + n), client(3.2 + n))]
    sentence = told(scene(*START, *response(6), *unheard(1), *again, link=HISTORY), Cause.SERVER_STOPPED)
    assert "The server sent its last new byte" in sentence
    assert "The NAT changed its mappings after 500.0 ms" in sentence


def test_a_handshake_that_was_never_complete() -> None:
    sentence = told(scene(HELLO, GREETING, client(0.5, form=Form.INITIAL)), Cause.HANDSHAKE_INCOMPLETE)
    assert "the server's Finished is missing" in sentence
    assert "the client sent last, after 500.0 ms: Initial 2" in sentence
    assert "ServerHello is missing" in told(scene(HELLO, server(0.1, form=Form.RETRY)), Cause.HANDSHAKE_INCOMPLETE)


def test_a_client_that_does_not_go_on_in_another_version() -> None:
    refusal = server(0.1, form=Form.VERSION_NEGOTIATION)
    sentence = told(scene(HELLO, refusal), Cause.HANDSHAKE_INCOMPLETE)
    assert sentence.startswith("The server answered with Version Negotiation (frame 2), and the client did not go on")
    again = client(0.2, form=Form.INITIAL, messages=[(Message.CLIENT_HELLO, 300)])
    assert "the server's Finished is missing" in told(
        scene(HELLO, refusal, again, GREETING), Cause.HANDSHAKE_INCOMPLETE
    )


def test_closed_with_code_and_phrase() -> None:
    close = client(0.3, form=Form.HANDSHAKE, signals=[(Frame.CLOSE, 0x12A, 6, "unknown issuer")])
    sentence = told(scene(HELLO, GREETING, close, by_us=False), Cause.CLOSED_BY_CLIENT)
    assert sentence == (
        'The client closed the connection after 300.0 ms with CRYPTO_ERROR 0x12a (bad_certificate), saying "unknown '
        "issuer\" (frame 3 of the client's trace)."
    )
    close = server(0.9, signals=[(Frame.CLOSE, 0x0A, 8, "")])
    sentence = told(scene(*START, *response(3), close), Cause.CLOSED_BY_SERVER)
    assert "with PROTOCOL_VIOLATION (frame 8 of the client's trace)" in sentence
    lost = server(0.9, lost=True, signals=[(Frame.CLOSE, 0x0A, 8, "")])
    sentence = told(scene(*START, *response(3), lost), Cause.CLOSED_BY_SERVER)
    assert "(frame 8 of the server's trace)" in sentence


def test_a_close_that_we_caused_or_that_came_when_all_was_there_is_no_cause() -> None:
    bye = client(3.0, signals=[(Frame.CLOSE_APPLICATION, 0, 0, "")])
    assert explain(scene(*START, *response(10), bye))[0] is Cause.ALL_ARRIVED
    assert explain(scene(*START, *response(3), bye))[0] is Cause.SERVER_STOPPED
    late = server(3.2, signals=[(Frame.CLOSE, 0, 0, "")])
    assert explain(scene(*START, *response(3), bye, late, duration=3.1))[0] is Cause.SERVER_STOPPED
    assert explain(scene(*START, *response(3), bye, by_us=False))[0] is Cause.CLOSED_BY_CLIENT


def test_no_request_and_no_response() -> None:
    told(scene(HELLO, GREETING, FINISHED, client(0.25)), Cause.NO_REQUEST)
    assert "after 350.0 ms" in told(scene(*START, server(0.4)), Cause.NO_RESPONSE)
    lost = client(0.25, lost=True, frames=[(0, 0, 10)])
    assert "never reached" in told(scene(HELLO, GREETING, FINISHED, lost, server(2)), Cause.NO_RESPONSE)


@pytest.mark.parametrize(
    ("limit", "what"), [("initial_max_data", "connection"), ("initial_max_stream_data_bidi_local", "stream 0")]
)
def test_stalled_by_flow_control(limit: str, what: str) -> None:
    made = scene(*START, *response(5), server(5.0), parameters=PARAMETERS | {limit: 5000})
    sentence = told(made, Cause.FLOW_CONTROL)
    assert f"limit of the {what}, 5000 bytes, with packet 8" in sentence


def test_a_limit_that_was_raised_is_none() -> None:
    more = client(0.3, signals=[(Frame.MAX_DATA, 900_000, 0, "")])
    made = scene(*START, more, *response(5), server(5.0), parameters=PARAMETERS | {"initial_max_data": 5000})
    assert explain(made)[0] is Cause.SERVER_STOPPED


def test_a_receiver_that_is_too_slow() -> None:
    raises = [client(0.3 + n * 0.5, signals=[(Frame.MAX_DATA, 3000 + 1000 * n, 0, "")]) for n in range(5)]
    data = [server(0.5 + n * 0.5, frames=[(0, 1000 * n, 1000)]) for n in range(5)]
    sentence = told(
        scene(*START, *raises, *data, parameters=PARAMETERS | {"initial_max_data": 1000}), Cause.SLOW_RECEIVER
    )
    assert "5 of 5 packets" in sentence


def test_idle() -> None:
    late = scene(*START, *response(3), duration=60.0)
    assert "Neither side sent anything after" in told(late, Cause.IDLE_TIMEOUT)
    gap = scene(*START, *response(3), server(40.0))
    assert "for 39.6 s from 420.0 ms on; the idle time-out is 30.0 s" in told(gap, Cause.IDLE_TIMEOUT)


def test_a_server_that_stopped_and_one_that_only_repeats() -> None:
    assert "last new byte after 450.0 ms in packet 9" in told(
        scene(*START, *response(6), server(5.0)), Cause.SERVER_STOPPED
    )
    again = [server(1.0 + n, frames=[(0, 2000, 1000)]) for n in range(4)]
    sentence = told(scene(*START, *response(6, lost=[2]), *again), Cause.CONGESTION_CONTROL)
    assert sentence.endswith("the link lost packets 6.")


def test_without_keys_nothing_is_said_of_what_arrived() -> None:
    """A client that is killed before it writes its key log, at a server that has none."""
    closed = [server(0.4 + n / 10, decrypted=False) for n in range(5)]
    made = scene(HELLO, GREETING, FINISHED, client(0.25, decrypted=False), *closed, duration=5.0)
    sentence = told(made, Cause.NONE)
    assert sentence.startswith("No key log decrypts the packets after the handshake")
    assert "last packet came after" in sentence


def test_slow() -> None:
    assert "5.859 KiB of 9.766 KiB" in told(scene(*START, *response(6)), Cause.TOO_SLOW)
    slow = scene(*START, *response(6, every=0.5, lost=[1, 3]))
    assert "the link lost packets 5, 7" in told(slow, Cause.CONGESTION_CONTROL)


@pytest.mark.parametrize("by_us", [True, False])
def test_responses_that_are_reset_or_stopped(by_us: bool) -> None:
    """As nginx does after 60 s in which a stream had no turn; the client then closes without an error."""
    bye = client(9, signals=[(Frame.CLOSE_APPLICATION, 0, 0, "")])
    reset = [server(3.0 + n, signals=[(Frame.RESET_STREAM, 4 * n, 0x10C, "0")]) for n in (0, 1, 1, 2)]
    one = server(2.0, frames=[(8, 0, 500)], fin=True)
    sentence = told(scene(*START, *response(3), one, *reset, bye, by_us=by_us), Cause.STREAM_RESET)
    assert "server reset 2 responses" in sentence  # stream 8 is whole
    assert "that on stream 0 after 3.1 s with application code 0x10c" in sentence
    stop = client(2.5, signals=[(Frame.STOP_SENDING, 0, 0x10C, "")])
    assert "client stopped 2 responses" in told(scene(*START, *response(3), one, stop, *reset, bye), Cause.STREAM_RESET)
    error = server(8, signals=[(Frame.CLOSE, 0x0A, 8, "")])
    told(scene(*START, *response(3), *reset, error), Cause.CLOSED_BY_SERVER)
    told(scene(*START, *response(10), *reset, bye), Cause.ALL_ARRIVED)
    push = server(3, signals=[(Frame.RESET_STREAM, 3, 0x10C, "0")])
    told(scene(*START, *response(3), push, bye), Cause.SERVER_STOPPED)


@pytest.mark.parametrize("by_us", [True, False])
def test_a_server_that_answers_with_stateless_resets(by_us: bool) -> None:
    resets = [server(4 + n, form=Form.STATELESS_RESET, decrypted=False) for n in range(2)]
    sent = (*START, *response(6, every=0.5, lost=[1, 3]), client(3.8), *resets)
    sentence = told(scene(*sent, by_us=by_us), Cause.CLOSED_BY_SERVER)
    assert "it sent 2 stateless resets, the first after 4.1 s (frame" in sentence


def test_resets_after_the_whole_response_are_no_cause() -> None:
    reset = server(4, form=Form.STATELESS_RESET, decrypted=False)
    told(scene(*START, *response(10), client(3.8), reset), Cause.ALL_ARRIVED)


# ---- several connections --------------------------------------------------------------------


def on(connection: int, later: float, *sent: Sent) -> list[Sent]:
    """The same packets on another connection, so much later."""
    return [
        Sent(each.time + later, each.from_server, each.row | {"connection": connection}, each.lost) for each in sent
    ]


GET = [
    *START,
    server(0.4, frames=[(0, 0, 1000)], fin=True),
    client(0.52, signals=[(Frame.CLOSE_APPLICATION, 0, 0, "")]),
]
"""A connection that fetches a file of 1000 bytes and ends as it should."""
TWO, THREE = (PARAMETERS,), (PARAMETERS, PARAMETERS)


def test_the_normal_end_of_a_first_connection_is_not_the_cause_of_a_failure() -> None:
    hellos = [client(n, form=Form.INITIAL) for n in range(3)]
    made = scene(*GET, *on(1, 1.0, *hellos), size=2000, by_us=False, others=TWO)
    sentence = told(made, Cause.HANDSHAKE_INCOMPLETE)
    assert sentence.startswith("Connection 2 of 2: The handshake was never complete: the server's ServerHello")
    assert "the client sent last, after 3.0 s" in sentence


def test_equal_streams_of_two_connections_are_two_responses() -> None:
    whole = scene(*GET, *on(1, 1.0, *GET), size=2000, by_us=False, others=TWO)
    assert whole.series.arrived.new.tolist() == [1000, 1000]
    assert whole.series.requests.connection.tolist() == [0, 1]
    assert "All 1.953 KiB of the response had arrived" in told(whole, Cause.ALL_ARRIVED)


def test_a_connection_that_an_error_closed() -> None:
    error = client(0.3, signals=[(Frame.CLOSE, 0x0A, 8, "")])
    sentence = told(scene(*GET, *on(1, 1.0, *START, error), size=2000, others=TWO, by_us=False), Cause.CLOSED_BY_CLIENT)
    assert (
        sentence
        == "Connection 2 of 2: The client closed the connection after 1.3 s with PROTOCOL_VIOLATION (frame 11 of the "
        "client's trace)."
    )
    sentence = told(
        scene(*START, error, *on(1, 0.01, *START), size=2000, others=TWO, by_us=False), Cause.CLOSED_BY_CLIENT
    )
    assert sentence.startswith("Connection 1 of 2: The client closed the connection after 300.0 ms")


def test_a_connection_that_the_client_gave_up_and_replaced_is_no_cause() -> None:
    given_up = client(0.3, form=Form.INITIAL, signals=[(Frame.CLOSE, 0x01, 0, "")])
    last = on(2, 2.0, *START)
    made = scene(HELLO, given_up, *on(1, 1.0, *GET), *last, size=2000, others=THREE, by_us=False)
    assert told(made, Cause.NO_RESPONSE).startswith("Connection 3 of 3: The request reached the server after 2.4 s")
    arrived = scene(HELLO, given_up, *on(1, 1.0, *GET), size=1000, others=TWO, by_us=False)
    told(arrived, Cause.ALL_ARRIVED)


def test_limits_and_time_outs_are_those_of_the_connection() -> None:
    small = PARAMETERS | {"initial_max_data": 5000}
    blocked = on(1, 1.0, *START, *response(5), server(5.0))
    sentence = told(scene(*GET, *blocked, size=11_000, others=[small]), Cause.FLOW_CONTROL)
    assert sentence.startswith(
        "Connection 2 of 2: The server had used up the flow control limit of the connection, 5000"
    )
    idle = on(1, 1.0, *START, *response(3))
    short = PARAMETERS | {"max_idle_timeout": 5_000}
    sentence = told(scene(*GET, *idle, size=11_000, others=[short], duration=9.0), Cause.IDLE_TIMEOUT)
    assert "Connection 2 of 2: Neither side sent anything after 1.4 s" in sentence
    assert sentence.endswith("the idle time-out is 5.0 s.")


def test_code_names() -> None:
    assert code_name(Frame.CLOSE, 0x178) == "CRYPTO_ERROR 0x178 (no_application_protocol)"
    assert code_name(Frame.CLOSE, 0x1F0) == "CRYPTO_ERROR 0x1f0 (unknown alert)"
    assert code_name(Frame.CLOSE, 0x5000) == "code 0x5000"
    assert code_name(Frame.CLOSE_APPLICATION, 0x10C) == "application code 0x10c"
    assert not is_error(Frame.CLOSE_APPLICATION, 0x100)
    assert is_error(Frame.CLOSE, 0x100)

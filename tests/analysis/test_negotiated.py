"""What endpoints negotiated, out of recorded runs of six implementations and of traces without keys."""

from pathlib import Path

import pytest

from quicsat.analysis.negotiated import negotiated
from quicsat.model.negotiated import FACTS, EarlyData
from quicsat.traces.key_log import key_lines
from quicsat.traces.tcp import read_tcp
from quicsat.traces.trace import read
from tests.early_data_builder import two_visits

REAL = Path(__file__).resolve().parents[1] / "data/real"
UNLIMITED = 2**62 - 1
"""The largest number of variable length."""


@pytest.mark.parametrize(
    ("pair", "cipher", "client", "server"),
    [  # initial_max_data, max_ack_delay and active_connection_id_limit of each side, as tshark 4.4 shows them
        ("go-x-net_neqo", "AES-128-GCM", (UNLIMITED, 20, 8), (16_777_216, 25, 4)),
        ("picoquic_msquic", "AES-256-GCM", (33_554_432, 26, 4), (1_048_576, 10, 8)),
        ("quic-go_quinn", "AES-128-GCM", (UNLIMITED, 25, 5), (786_432, 26, 4)),
    ],
)
def test_recorded_handshakes(pair: str, cipher: str, client: tuple[int, ...], server: tuple[int, ...]) -> None:
    found = negotiated(read(REAL / pair / "trace.pcap", key_lines(REAL / pair / "keys.log")))
    facts = found.facts
    assert set(facts) == {*FACTS} - {"fast_open"}
    assert facts["early_data"] == "none"
    assert [facts[name] for name in ("version", "cipher", "alpn", "resumed")] == ["QUIC v1", cipher, "hq-interop", "no"]
    for role, expected in (("client", client), ("server", server)):
        names = ("initial_max_data", "max_ack_delay", "active_connection_id_limit")
        assert tuple(facts[f"{role}.{name}"] for name in names) == expected


def test_without_keys_only_hellos_are_known() -> None:
    found = negotiated(read(REAL / "picoquic_msquic/trace.pcap", key_lines()))
    assert (found.server, found.alpn) == (None, "")
    assert found.client["initial_max_data"] == 33_554_432
    assert "alpn" not in found.facts
    assert not any(name.startswith("server.") for name in found.facts)


@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("fast_open", [None, True, False])
def test_a_second_visit_over_tcp(tmp_path: Path, accepted: bool, fast_open: bool | None) -> None:
    client = two_visits(tmp_path, accepted=accepted, fast_open=fast_open)
    first, second = negotiated(client), negotiated(client, 1)
    assert first is not None and second is not None
    assert (first.resumed, first.early_data, first.fast_open) == (False, EarlyData.NONE, EarlyData.NONE)
    known = {"version": "TLS 1.3", "cipher": "AES-128-GCM", "alpn": "h2", "resumed": "yes"}
    offers = {None: "none", True: "accepted", False: "refused"}
    assert second.facts == known | {"early_data": offers[accepted], "fast_open": offers[fast_open]}
    assert negotiated(client, 2) is None


def test_without_keys_early_data_over_tcp_are_unknown(tmp_path: Path) -> None:
    two_visits(tmp_path, accepted=True)
    assert negotiated(read_tcp(tmp_path / "trace.pcap")) is None
    hellos = negotiated(read_tcp(tmp_path / "trace.pcap", keys=["CLIENT_RANDOM " + "0" * 64 + " " + "0" * 64]), 1)
    assert (hellos.resumed, hellos.early_data) == (True, None)

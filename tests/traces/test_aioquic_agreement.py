"""Our columns agree with aioquic's decoder on every STREAM byte range in real traces of several implementations."""

from pathlib import Path

import pytest

from quicsat.traces.columns import Form
from quicsat.traces.key_log import key_lines
from quicsat.traces.trace import read
from tests.independent import Range, stream_ranges

REAL = Path(__file__).parents[1] / "data" / "real"


@pytest.mark.parametrize("pair", ["quic-go_quinn", "picoquic_msquic", "go-x-net_neqo"])
def test_every_stream_byte_range(pair: str) -> None:
    """The beginnings of 10 MiB transfers over the terrestrial link."""
    place = REAL / pair
    found = read(place / "trace.pcap", key_lines(place / "keys.log"))
    frames, one_rtt = found.frames, found.form == Form.ONE_RTT
    ours = [
        Range(*row)
        for row in zip(
            found.from_server[frames.packet].tolist(), found.number[frames.packet].tolist(), frames.stream.tolist(),
            frames.offset.tolist(), frames.length.tolist(), strict=True,
        )
    ]  # fmt: skip
    theirs = stream_ranges(place / "trace.pcap", place / "keys.log")
    assert len(theirs) > 50
    assert ours == theirs
    assert found.decrypted[one_rtt].all()

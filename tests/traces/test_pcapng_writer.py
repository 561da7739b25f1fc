"""A capture is written packet by packet, whatever its size."""

import io
import struct
import tracemalloc
from functools import partial
from pathlib import Path

from quicsat.model.whole_file import replaced
from quicsat.traces.pcapng_writer import CapturedEnd, is_export, write_pcapng
from quicsat.traces.records import records_before_fault, records_by_interface

PACKET = bytes(1400)
COUNT = 15_000


def capture(path: Path, count: int, data: bytes = PACKET) -> Path:
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1))
        for number in range(count):
            file.write(struct.pack("<IIII", 1_750_000_000 + number // 1000, number % 1000, len(data), len(data)) + data)
    return path


def test_the_memory_does_not_grow_with_the_capture(tmp_path: Path) -> None:
    """Two traces of 21 MB take less than 1 MB."""
    traces = [capture(tmp_path / name, COUNT) for name in ("left.pcap", "right.pcap")]
    target = tmp_path / "run.pcapng"
    tracemalloc.start()
    try:
        with replaced(target) as file:
            write_pcapng(file, b"", [CapturedEnd(each.stem, partial(records_before_fault, each)) for each in traces])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert target.stat().st_size > 2 * COUNT * len(PACKET)
    assert peak < 1_000_000
    assert is_export(target)


def test_what_cannot_seek_gets_the_same_packets(tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    trace = capture(tmp_path / "left.pcap", 3)
    pipe = Pipe()
    write_pcapng(pipe, b"", [CapturedEnd("left", partial(records_before_fault, trace))])
    (tmp_path / "copy.pcapng").write_bytes(pipe.getvalue())
    assert records_by_interface(tmp_path / "copy.pcapng") == {"left": [*records_before_fault(trace)]}
    assert not is_export(tmp_path / "copy.pcapng")

"""Logs as numbered lines."""

from pathlib import Path

import pytest

from quicsat.site.logs import logs


def test_lines_are_plain_and_numbered(tmp_path: Path) -> None:
    (tmp_path / "output.txt").write_bytes(b"\x1b[31mred\x1b[0m\n\tindented\nbad \xff byte\nright\xe2\x80\xaeleft\n")
    [log] = logs(tmp_path, 1000)
    assert [(line.number, line.text) for line in log.head] == [
        (1, "red"), (2, "    indented"), (3, "bad � byte"), (4, "rightleft"),
    ]  # fmt: skip
    assert log.tail == ()


@pytest.mark.parametrize("most", [50, 64, 101, 250])
def test_a_long_log_keeps_both_ends_and_its_line_numbers(tmp_path: Path, most: int) -> None:
    text = "".join(f"line {number:04}\n" for number in range(1, 1001))
    (tmp_path / "output.txt").write_text(text)
    [log] = logs(tmp_path, most)
    assert all(line.text == f"line {line.number:04}" for line in (*log.head, *log.tail))
    assert len(log.head) + log.left_out + len(log.tail) == 1000
    assert log.tail[-1].number == 1000
    assert log.last[-1].text == "line 1000"


def test_secrets_links_and_directories_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "keys.log").write_text("secret")
    (tmp_path / "client" / "stderr.log").write_text("words\n")
    (tmp_path / "client" / "link.log").symlink_to("/etc/passwd")
    (tmp_path / "client" / "folder.log").mkdir()
    assert [log.name for log in logs(tmp_path, 100)] == ["client/stderr.log"]


def test_a_single_endless_line_is_cut(tmp_path: Path) -> None:
    (tmp_path / "output.txt").write_bytes(b"x" * 100_000)
    [log] = logs(tmp_path, 3000)
    assert sum(len(line.text) for line in (*log.head, *log.tail)) <= 6000

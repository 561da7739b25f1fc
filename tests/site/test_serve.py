"""What the server on this machine sends, and what it refuses."""

import http.client
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from quicsat.site import serve
from tests.site.builder import ROOT


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    site = tmp_path_factory.mktemp("site")
    (site.parent / "secret").mkdir(exist_ok=True)
    for name in ("index.html", "a/index.html", "b/x.txt", "client-x.sqlog.json", "x.svg", "x.pcapng", "../secret/key"):
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(name)
    (site / "link.txt").symlink_to("/etc/passwd")
    (site / "folder").symlink_to(site.parent / "secret")
    (site / "page").mkdir()
    (site / "page/index.html").symlink_to(site / "index.html")
    with serve.server(site) as found:
        yield found


def asked(
    address: str, path: str, host: str | None = "localhost:8000", method: str = "GET"
) -> http.client.HTTPResponse:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    with closing(connection):
        connection.putrequest("GET", path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        answer.read()
        return answer


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200), ("/index.html?a=b", 200), ("/a", 301), ("/a/", 200), ("/b/x.txt", 200), ("/b/", 404),
        ("/none", 404), ("/%00", 404), ("/a%00/", 404), ("/" + "a" * 5000, 404), ("/link.txt", 404),
        ("/folder/key", 404), ("/page/", 404),
        ("/../secret/key", 404), ("/%2e%2e/secret/key", 404), ("/%ff%fe", 404), ("/index.html/", 404),
    ],
)  # fmt: skip
def test_pages_and_files_of_the_site_are_sent_and_nothing_else(
    address: str, path: str, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert asked(address, path).status == status
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:1"])
def test_this_machine_is_asked_by_its_names(address: str, host: str) -> None:
    assert asked(address, "/", host).status == 200


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "evil.example:8000", "localhost.evil.example", "localhost@x"]
)
def test_requests_for_other_hosts_are_refused(address: str, host: str | None) -> None:
    assert asked(address, "/", host).status == 421


def test_a_request_that_is_none_is_answered(address: str, capfd: pytest.CaptureFixture[str]) -> None:
    parts = urlsplit(address)
    for request, status in ((b"GET / x y HTTP/1.1", 400), (b"BREW / HTTP/1.1", 501), (b"GET http://[ HTTP/1.1", 404)):
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
            connection.sendall(request + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert connection.makefile("rb").readline().split()[1] == str(status).encode()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("second", ["localhost", "evil.example"])
def test_a_request_with_two_hosts_is_refused(address: str, second: str) -> None:
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: localhost\r\nHost: {second}\r\n\r\n".encode())
        assert connection.makefile("rb").readline().split()[1] == b"400"


def test_a_client_that_goes_away_leaves_no_message(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ThreadingHTTPServer, "daemon_threads", False)  # so that its end waits for all requests
    (tmp_path / "large.txt").write_bytes(bytes(30_000_000))
    with serve.server(tmp_path) as address:
        parts = urlsplit(address)
        for request in (b"GET /large.txt HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET / HT"):
            with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
                connection.sendall(request)
                if request.endswith(b"\n"):
                    assert connection.recv(10)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends with RST
        assert asked(address, "/none").status == 404  # connections are accepted in turn
    assert capfd.readouterr().err == ""


HEADERS: Mapping[str, tuple[str, str, str | None]] = {
    "/": ("text/html; charset=utf-8", serve.PAGE_POLICY, None),
    "/a/index.html": ("text/html; charset=utf-8", serve.PAGE_POLICY, None),
    "/b/x.txt": ("text/plain; charset=utf-8", serve.FILE_POLICY, None),
    "/x.svg": ("image/svg+xml", serve.FILE_POLICY, None),
    "/x.pcapng": ("application/octet-stream", serve.FILE_POLICY, None),
    "/client-x.sqlog.json": ("application/json", serve.FILE_POLICY, serve.QVIS),
}


@pytest.mark.parametrize("path", HEADERS)
def test_headers_keep_browsers_from_running_anything(address: str, path: str) -> None:
    found = asked(address, path)
    names = ("Content-Type", "Content-Security-Policy", "Access-Control-Allow-Origin")
    assert tuple(map(found.getheader, names)) == HEADERS[path]
    assert found.getheader("X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize("name", ["apache.conf", "nginx.conf", "Caddyfile"])
def test_configurations_of_other_servers_have_the_same_policies(name: str) -> None:
    """`make bench-text-sinks` starts these servers with them."""
    text = (ROOT / "web/servers" / name).read_text()
    assert all(text.count(each) == 1 for each in (serve.PAGE_POLICY, serve.FILE_POLICY, serve.QVIS, "nosniff"))

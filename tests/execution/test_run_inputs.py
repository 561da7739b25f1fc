"""Inputs of a run."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from quicsat.execution.run_inputs import make_inputs
from quicsat.links.session import InputOrigin
from quicsat.model.implementation import Role
from quicsat.model.webtransport import WebTransport
from tests import fakes

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
CASE = replace(fakes.CASE, file_sizes=(10, 3_000_000))


def test_files_have_the_sizes_asked_for_and_are_never_the_same(tmp_path: Path) -> None:
    """Size, digest and place of each file; a second call gives other names and contents."""
    with make_inputs(CASE, tmp_path) as first, make_inputs(CASE, tmp_path) as second:
        assert [file.size for file in first.files] == [10, 3_000_000]
        for file in first.files:
            content = first.www[f"www/{file.name}"].read_bytes()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)
        assert {file.sha256 for file in first.files}.isdisjoint(file.sha256 for file in second.files)
        paths = list(first.www.values())
    assert all(path.is_relative_to(tmp_path) for path in paths)
    assert not list(tmp_path.iterdir())


def test_one_origin_gives_the_same_inputs(tmp_path: Path) -> None:
    """Bytes of files, names and certificates follow from seed and moment; another seed changes all of them."""
    found = []
    for seed in (1, 1, 2):
        with make_inputs(replace(CASE, chain_length=3), tmp_path, InputOrigin(seed, MOMENT)) as inputs:
            found.append((inputs.files, inputs.certs))
    assert found[0] == found[1]
    assert found[0][0][0].name != found[2][0][0].name
    assert found[0][1]["certs/cert.pem"] != found[2][1]["certs/cert.pem"]
    (root,) = x509.load_pem_x509_certificates(found[0][1]["certs/ca.pem"])
    assert root.not_valid_before_utc < MOMENT < root.not_valid_after_utc


def test_a_run_without_files_is_possible(tmp_path: Path) -> None:
    """As for Version Negotiation: the client is given an address without a file."""
    with make_inputs(replace(CASE, file_sizes=()), tmp_path) as inputs:
        assert (inputs.files, inputs.requests) == ((), ("",))


@pytest.mark.parametrize("kind", [WebTransport.RECEIVE, WebTransport.SEND])
def test_files_of_a_session_are_in_its_directory(tmp_path: Path, kind: WebTransport) -> None:
    with make_inputs(replace(CASE, webtransport=kind), tmp_path) as inputs:
        session = inputs.session
        assert {file.name.partition("/")[0] for file in inputs.files} == {session.path}
        assert set(inputs.www) == {f"www/{file.name}" for file in inputs.files}
        assert len(set(session.protocols.values())) == 1
        assert session.expected == session.protocols[Role.CLIENT][0]


def test_a_handshake_has_two_protocols_in_common_in_different_orders(tmp_path: Path) -> None:
    case = replace(CASE, file_sizes=(), webtransport=WebTransport.HANDSHAKE)
    for seed in range(20):
        with make_inputs(case, tmp_path, InputOrigin(seed, MOMENT)) as inputs:
            session = inputs.session
            client, server = session.protocols[Role.CLIENT], session.protocols[Role.SERVER]
            assert len({*client, *server}) == 8
            common = [protocol for protocol in client if protocol in server]
            assert [protocol for protocol in server if protocol in client] == common[::-1]
            assert session.expected == common[0]
            digest = hashlib.sha256(common[0].encode()).hexdigest()
            assert [(file.name, file.sha256) for file in inputs.files] == [
                ("client/negotiated_protocol.txt", digest),
                ("server/negotiated_protocol.txt", digest),
            ]

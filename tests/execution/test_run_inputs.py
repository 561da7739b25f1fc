"""Certificates and random files of a run."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from interop.execution.run_inputs import SERVER_NAMES, certificates, make_inputs
from interop.links.session import InputOrigin
from interop.model.emulated_link import EmulatedLink
from interop.model.test_case import TestCase

LINK = EmulatedLink("simple-p2p", 0.015, 0.015, 2e7, 2e7, 25, 25)
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
CASE = TestCase("t", "T", "", LINK, (10, 3_000_000), 1, 60)


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


@pytest.mark.parametrize("length", [1, 3, 9])
def test_chain_verifies_from_leaf_to_root(length: int) -> None:
    """Each certificate is signed by the next; the leaf carries the contract's names and the private key."""
    files = certificates(length, random.SystemRandom(), datetime.now(UTC))
    (root,) = x509.load_pem_x509_certificates(files["ca.pem"])
    chain = x509.load_pem_x509_certificates(files["cert.pem"])
    assert len(chain) == length
    for certificate, issuer in zip(chain, [*chain[1:], root], strict=True):
        certificate.verify_directly_issued_by(issuer)
    names = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    contract, long = names.get_values_for_type(x509.DNSName)[:4], names.get_values_for_type(x509.DNSName)[4:]
    assert tuple(contract) == SERVER_NAMES
    assert [len(name) for name in long] == [250] * (20 if length > 1 else 0)
    assert all(len(label) <= 63 for name in long for label in name.split("."))
    key = load_pem_private_key(files["priv.key"], None)
    assert key.public_key() == chain[0].public_key()

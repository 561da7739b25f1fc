"""Certificates and keys of a run."""

import base64
import random
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from quicsat.links.certificates import SERVER_NAMES, certificates, wireguard_keys


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


def test_keys_of_wireguard_follow_from_a_private_one() -> None:
    """``wg pubkey`` says the same of the key that is 0, 1, 2 and so on."""

    class Counted(random.Random):
        def randbytes(self, n: int) -> bytes:
            return bytes(range(n))

    private, public = wireguard_keys(Counted())
    assert base64.b64decode(private) == bytes(range(32))
    assert public == b"j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8="

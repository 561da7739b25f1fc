"""Certificates and keys of one run, of the endpoints and of a VPN, on request from a seed."""

import base64
import datetime
import random
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.x509.oid import NameOID

LONG_NAMES = 20
"""Number of 250-character names that enlarge the leaf of a longer chain, as in the QUIC Interop Runner."""
SERVER_NAMES = ("server", "server4", "server6", "server46")
"""Names in the certificate, from the endpoint contract."""
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Number of points of the curve P-256 (FIPS 186-4, D.1.2.3); private keys are below it."""
VALIDITY = datetime.timedelta(days=10)


def certificates(chain_length: int, numbers: random.Random, moment: datetime.datetime) -> dict[str, bytes]:
    """``ca.pem`` (the root), ``cert.pem`` (the leaf and its ``chain_length - 1`` intermediates) and ``priv.key``.

    Keys are ECDSA P-256, as the QUIC Interop Runner makes them, and signatures deterministic (RFC 6979): the same
    ``numbers`` and ``moment`` give the same bytes.
    """

    def new_key() -> ec.EllipticCurvePrivateKey:
        return ec.derive_private_key(numbers.randrange(1, P256_ORDER), ec.SECP256R1())

    def certificate(
        subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, names: Sequence[str] = ()
    ) -> x509.Certificate:
        serial = numbers.getrandbits(159) | 1
        return _certificate(subject, issuer, public_key, issuer_key, serial, moment, names)

    issuer_key = new_key()
    issuer = _name("quicsat root")
    root = certificate(issuer, issuer, issuer_key.public_key())
    chain: list[x509.Certificate] = []
    for level in range(1, chain_length + 1):
        leaf = level == chain_length
        key = new_key()
        subject = _name("server" if leaf else f"quicsat intermediate {level}")
        names = (*SERVER_NAMES, *_long_names(LONG_NAMES if chain_length > 1 else 0, numbers)) if leaf else ()
        chain.insert(0, certificate(subject, issuer, key.public_key(), names))
        issuer, issuer_key = subject, key
    private = issuer_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = [certificate.public_bytes(serialization.Encoding.PEM) for certificate in (root, *chain)]
    return {"ca.pem": pem[0], "cert.pem": b"".join(pem[1:]), "priv.key": private}


def _long_names(count: int, numbers: random.Random) -> list[str]:
    """Random host names of 250 characters, in labels of at most 63 (RFC 1035, section 2.3.4)."""
    return [".".join(numbers.randbytes(31).hex() for _ in range(4))[:250] for _ in range(count)]


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    signing_key: ec.EllipticCurvePrivateKey,
    serial: int,
    moment: datetime.datetime,
    names: Sequence[str],
) -> x509.Certificate:
    """A server's certificate if there are ``names`` of servers, else an authority's."""
    authority = not names
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(serial)
        .not_valid_before(moment - datetime.timedelta(days=1))  # clocks of hosts differ
        .not_valid_after(moment + VALIDITY)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
        .add_extension(_key_usage(authority=authority), critical=True)
    )
    if not authority:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(signing_key, hashes.SHA256(), ecdsa_deterministic=True)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def wireguard_keys(numbers: random.Random) -> tuple[bytes, bytes]:
    """A private key of WireGuard and its public key, both in base64."""
    private = numbers.randbytes(32)
    public = X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    return base64.b64encode(private), base64.b64encode(public)

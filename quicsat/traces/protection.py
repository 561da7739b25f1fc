"""Takes the protection off QUIC packets: keys from secrets, header masks, decryption, key updates.

RFC 9001, section 5 (version 1) and RFC 9369, section 3.3 (version 2).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

AES_128, AES_256, CHACHA20 = 0x1301, 0x1302, 0x1303
"""Cipher suites of TLS 1.3 (RFC 8446, appendix B.4)."""
VERSION_1, VERSION_2 = 0x00000001, 0x6B3343CF
SALTS = {
    VERSION_1: bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a"),
    VERSION_2: bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9"),
}
PREFIXES = {VERSION_1: "quic", VERSION_2: "quicv2"}
SAMPLE = 16
"""Bytes of a sample for the header mask; it begins four bytes after the packet number does."""
LONG_MASKS = (0x0F,)
SHORT_MASKS = (0x1F, 0x07)
"""Bits of a header's first byte that are masked (RFC 9001, section 5.4.1). Two of a short header are not, if both sides
have agreed on loss bits, as lsquic does (draft-ferrieux-hamchaoui-quic-lossbits)."""


def ciphers_for(secret: bytes) -> tuple[int, ...]:
    """The cipher suites whose secrets have this length."""
    return (AES_256,) if len(secret) == 48 else (AES_128, CHACHA20)


@lru_cache(maxsize=1024)  # each Initial needs them
def initial_keys(version: int, destination: bytes) -> tuple[Keys, Keys] | None:
    """Keys of the client's and the server's Initials; None for a version whose salt is unknown."""
    salt = SALTS.get(version)
    if salt is None:
        return None
    secret = HKDF.extract(SHA256(), salt, destination)
    client, server = (expand_label(secret, f"{side} in", 32) for side in ("client", "server"))
    return Keys(client, AES_128, version), Keys(server, AES_128, version)


def expand_label(secret: bytes, label: str, size: int) -> bytes:
    """HKDF-Expand-Label (RFC 8446, section 7.1)."""
    full = b"tls13 " + label.encode("ascii")
    info = size.to_bytes(2, "big") + bytes([len(full)]) + full + b"\0"
    return HKDFExpand(SHA384() if len(secret) == 48 else SHA256(), size, info).derive(secret)


class Aead:
    """The algorithm of a cipher suite with a key."""

    def __init__(self, key: bytes, cipher: int) -> None:
        self._aead = ChaCha20Poly1305(key) if cipher == CHACHA20 else AESGCM(key)

    def decrypt(self, nonce: bytes, protected: bytes, header: bytes) -> bytes | None:
        """What was protected together with a header; None if this is not its key."""
        try:
            return self._aead.decrypt(nonce, protected, header)
        except (InvalidTag, ValueError):
            return None


class Keys:
    """What protects the packets of one direction in one packet number space, in one key phase."""

    def __init__(
        self,
        secret: bytes,
        cipher: int,
        version: int,
        mask: Callable[[bytes], bytes] | None = None,
        generation: int = 0,
    ) -> None:
        self.secret, self.cipher, self.version, self.generation = secret, cipher, version, generation
        self._prefix = PREFIXES.get(version, "quic")
        size = 16 if cipher == AES_128 else 32
        key = expand_label(secret, f"{self._prefix} key", size)
        self._aead = Aead(key, cipher)
        self._vector = int.from_bytes(expand_label(secret, f"{self._prefix} iv", 12), "big")
        self.mask = mask or self._mask(expand_label(secret, f"{self._prefix} hp", size))
        """Sample -> at least five bytes of header mask."""

    def _mask(self, key: bytes) -> Callable[[bytes], bytes]:
        if self.cipher == CHACHA20:
            return lambda sample: Cipher(algorithms.ChaCha20(key, sample), mode=None).encryptor().update(bytes(5))
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update

    def open(self, number: int, header: bytes, protected: bytes) -> bytes | None:
        """The frames of a packet; None if these are not its keys."""
        return self._aead.decrypt((self._vector ^ number).to_bytes(12, "big"), protected, header)

    @cached_property
    def following(self) -> Keys:
        """The keys after a key update, which keeps the header mask (RFC 9001, section 6)."""
        secret = expand_label(self.secret, f"{self._prefix} ku", len(self.secret))
        return Keys(secret, self.cipher, self.version, self.mask, self.generation + 1)


def unprotect(data: bytes, at: int, keys: Keys, largest: int) -> tuple[int, int, bytes] | None:
    """Decrypt the packet ``data``, whose number begins at ``at``; None if these are not its keys.

    Returns its number, the first byte of its header without the mask, and its frames.

    ``largest`` is the largest packet number of its direction and space so far, -1 if there is none.
    """
    sample = data[at + 4 : at + 4 + SAMPLE]
    if len(sample) < SAMPLE:
        return None
    mask = keys.mask(sample)
    size = ((data[0] ^ mask[0]) & 3) + 1
    truncated = int.from_bytes(data[at : at + size], "big") ^ int.from_bytes(mask[1 : 1 + size], "big")
    rest = data[1:at] + truncated.to_bytes(size, "big")
    number = full_number(largest, truncated, 8 * size)
    for bits in LONG_MASKS if data[0] & 0x80 else SHORT_MASKS:
        first = data[0] ^ mask[0] & bits
        frames = keys.open(number, bytes([first]) + rest, data[at + size :])
        if frames is not None:
            return number, first, frames
    return None


def full_number(largest: int, truncated: int, bits: int) -> int:
    """A packet number from its last bits and the largest seen so far, -1 if none (RFC 9000, appendix A.3)."""
    window = 1 << bits
    expected = largest + 1
    number = (expected & ~(window - 1)) | truncated
    if number <= expected - window // 2 and number < (1 << 62) - window:
        return number + window
    if number > expected + window // 2 and number >= window:
        return number - window
    return number

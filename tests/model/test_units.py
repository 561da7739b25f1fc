"""Numbers are shown with their unit, and text with a unit becomes the exact number in SI base units."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quicsat.config.quantities import (
    RATE,
    SHARE,
    SIZE,
    TIME,
    Dimension,
    count,
    decimal,
    duration,
    one_of,
    probability,
    rate,
    share,
    size,
    within,
)
from quicsat.model import units
from quicsat.model.names import did_you_mean, is_image, is_name

PARSERS: dict[str, tuple[Dimension, Callable[[str], float]]] = {
    "duration": (TIME, duration),
    "rate": (RATE, rate),
    "size": (SIZE, size),
    "share": (SHARE, share),
}

# ---- numbers to text ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (units.mbit_per_s(20e6), "20.00 Mbit/s"),
        (units.mbit_per_s(5_049_999), "5.05 Mbit/s"),
        (units.percent(0.253), "25 %"),
        (units.percent(0.0125, digits=1), "1.2 %"),
        (units.seconds(0.0304), "30.4 ms"),
        (units.seconds(12.25), "12.2 s"),
        (units.seconds(754), "12 min 34 s"),
        (units.seconds(3599.4), "59 min 59 s"),
        (units.seconds(3599.6), "1 h 0 min"),
        (units.seconds(86_399), "1 d 0 h"),
        (units.seconds(536_400), "6 d 5 h"),
        (units.byte_size(1000), "1000 B"),
        (units.byte_size(1536), "1.5 KiB"),
        (units.byte_size(10 * units.MIB), "10 MiB"),
        (units.byte_size(3 * 1024 * units.MIB), "3 GiB"),
        (units.byte_size(1.5 * 1024**2 * units.MIB), "1.5 TiB"),
    ],
)
def test_numbers_are_shown_with_their_unit(shown: str, expected: str) -> None:
    assert shown == expected


# ---- text to numbers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (duration("300 ms"), 0.3),
        (duration("0.3 s"), 0.3),
        (duration("15us"), 15e-6),
        (duration(" 2 min "), 120.0),
        (rate("20 Mbit/s"), 20e6),
        (rate("250 kbit/s"), 250e3),
        (rate("0.1 Mbit/s"), 1e5),
        (size("10 MiB"), 10 * units.MIB),
        (size("10 MB"), 10_000_000),
        (size("1.5 KiB"), 1536),
        (share("1 %"), 0.01),
        (share("0.1%"), 0.001),
        (probability("0.017"), 0.017),
        (probability("1.7 %"), 0.017),
        (count("25"), 25),
    ],
)
def test_text_becomes_the_exact_number(value: float, expected: float) -> None:
    assert value == expected


@pytest.mark.parametrize(
    ("parse", "text", "fault"),
    [
        (duration, "300", 'has no unit; write for example "300 ms" (units: us, ms, s, min, h).'),
        (rate, "20", "units: bit/s, kbit/s, Mbit/s, Gbit/s"),
        (size, "10", "units: B, kB, MB, GB, KiB, MiB, GiB"),
        (share, "1", "units: %"),
        (rate, "20 mbit/s", "units: bit/s, kbit/s, Mbit/s, Gbit/s. Did you mean Mbit/s?"),
        (duration, "300 MiB", 'has the unknown unit "MiB"; units: us, ms, s, min, h.'),
        (duration, "", "is no duration"),
        (duration, "ms", "is no duration"),
        (duration, "nan s", "is no duration"),
        (duration, "1e3 s", "is no duration without an exponent"),
        (rate, "1e9 bit/s", "is no rate without an exponent"),
        (decimal, "1e300", "is no number without an exponent"),
        (count, "1e3", "is no whole number without an exponent"),
        (count, "9" * 23, "has more than 15 digits"),
        (decimal, "9" * 23, "has more than 15 digits"),
        (decimal, "0.12345678901", "9 behind it"),
        (duration, "1 000 ms", "is no duration"),
        (duration, "٣ s", "is no duration"),
        (size, "0.5 B", "is no whole number of bytes"),
        (size, "9" * 16 + " GiB", "has more than 15 digits before the point or 9 behind it"),
        (duration, "9" * 17 + "h", "has more than 15 digits before the point or 9 behind it"),
        (duration, "0.1234567891 s", "has more than 15 digits before the point or 9 behind it"),
        (duration, "1.2.3 s", "is no duration"),
        (duration, "5m", 'has the unknown unit "m"; units: us, ms, s, min, h. Did you mean min?'),
        (duration, "5 seconds", "Did you mean s?"),
        (duration, "5 msec", "Did you mean ms?"),
        (duration, "5 minutes", "Did you mean min?"),
        (duration, "5 hours", "Did you mean h?"),
        (rate, "5 Mbps", "Did you mean Mbit/s?"),
        (count, "2.5", "is no whole number"),
        (count, "0x10", "is no whole number"),
        (probability, "0.017 ms", 'has the unknown unit "ms"; units: %.'),
        (within(duration, "0 s", "60 s"), "-1 ms", "is out of range: 0 s to 60 s."),
        (within(count, "1", "9"), "0", "is out of range: 1 to 9."),
        (one_of(["exact", "paper"]), "papers", "is none of exact, paper. Did you mean paper?"),
    ],
)
def test_wrong_text_says_what_is_allowed(parse: Callable[[str], object], text: str, fault: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert fault in str(caught.value)


def test_both_ends_of_a_range_are_possible() -> None:
    parse = within(duration, "1 ms", "2 s")
    assert (parse("1 ms"), parse("2 s")) == (0.001, 2.0)


@given(kind=st.sampled_from(sorted(PARSERS)), data=st.data(), whole=st.integers(-(10**12), 10**12))
def test_every_number_and_unit_become_the_nearest_float(kind: str, data: st.DataObject, whole: int) -> None:
    dimension, parse = PARSERS[kind]
    unit, factor = data.draw(st.sampled_from(sorted(dimension.units.items())))
    digits = 0 if dimension is SIZE else data.draw(st.integers(0, 9))
    number = f"{whole}.{'7' * digits}" if digits else f"{whole}"
    exact = Fraction(number) * Fraction(factor)
    assert parse(f"{number} {unit}") == (exact if dimension is SIZE else float(exact))


@given(text=st.text(), kind=st.sampled_from(sorted(PARSERS)))
def test_no_text_raises_anything_but_value_error(text: str, kind: str) -> None:
    try:
        value = PARSERS[kind][1](text)
    except ValueError as fault:
        assert str(fault).endswith((".", "?"))
    else:
        assert value == value  # not NaN


# ---- names ----------------------------------------------------------------------------------


def test_names() -> None:
    names = ("quic-go", "s2n-quic", "0rtt", "a" * 64, "a.b_c")
    others = ("", "A", "-a", ".", "..", "a/b", "a b", "a" * 65, "a\n", "é", "_a")
    assert [name for name in (*names, *others) if is_name(name)] == [*names]


def test_image_references() -> None:
    images = ("quinn", "owner/name:tag", "host.example:5000/a/b__c/d-e:v1.2", "localhost/x", "localhost:5000/x",
              "builder:5000/x", "example.org/x@sha256:" + "0" * 64, "me/kwik_n_flupke-interop")  # fmt: skip
    others = ("", "Owner/Name", "a b", "a:", "a//b", "-a", "a@sha256:12", "a:b:c", "a" * 500, "Host/a", "a.b:x/y")
    assert [image for image in (*images, *others) if is_image(image)] == [*images]


def test_near_names_are_found_whatever_their_case() -> None:
    assert did_you_mean("SATLOS", ["sat", "satloss"]) == " Did you mean satloss?"
    assert did_you_mean("msquik", ["MsQuic", "kwik"]) == " Did you mean MsQuic?"
    assert did_you_mean("zebra", ["sat", "satloss"]) == ""
    assert did_you_mean("nope", ["open", "plot"]) == ""
    assert did_you_mean("page-p51", ["page-p25", "page-p50", "page-p75"]) == " Did you mean page-p50?"
    assert did_you_mean("polt", ["plan", "plot"]) == " Did you mean plot?"

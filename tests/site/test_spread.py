"""The confidence interval of a mean."""

from __future__ import annotations

import pytest

from interop.site.spread import interval


def test_interval_of_known_numbers() -> None:
    # R: t.test(c(1, 2, 3, 4, 5))$conf.int
    assert interval([1, 2, 3, 4, 5]) == pytest.approx((1.036757, 4.963243), abs=1e-3)


def test_one_number_has_none() -> None:
    assert interval([1.0]) is None

"""The type of matplotlib's axes, for annotations: only functions that draw import matplotlib, which takes time."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any

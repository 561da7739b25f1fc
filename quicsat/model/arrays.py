"""Types of the one-dimensional NumPy arrays that traces, statistics and plots work on."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Digests = NDArray[np.uint64]
"""Hashes of 64 bits."""

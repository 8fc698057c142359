"""What arrays of numbers are called, and the number that stands for none."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.core.numbers import MIN

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Records = NDArray[Any]

NO_VALUE = MIN
"""No pending drain, no open second, no link, no publish behind a mark."""

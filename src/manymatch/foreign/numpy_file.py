"""Arrays in `.npy` files of other programs; nothing in them is ever unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manymatch.system.errors import DataError, first_line

FAULTS = (OSError, ValueError, EOFError, SyntaxError, OverflowError, MemoryError)
"""What NumPy raises on damaged files, beside what zip files raise."""


def load_array(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    """The one array in a `.npy` file, in memory or `mapped` from the disk.

    Raises:
        DataError: there is no such file, or something else under its name.
    """
    try:
        found = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (*FAULTS, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not an array: {first_line(error)}") from None
    if not isinstance(found, np.ndarray):
        found.close()
        raise DataError(f"{path}: an archive of arrays, not one; give its name the end .npz")
    return found

"""Arrays in `.npy` files of other programs. Nothing in the files is unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manymatch.system.errors import DataError, first_line

FAULTS = (OSError, ValueError, EOFError, SyntaxError, OverflowError, MemoryError)
"""What NumPy raises for damaged files, besides the errors of zip files."""


def load_array(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    """The array in a `.npy` file, in memory or `mapped` from the disk.

    Raises:
        DataError: the file is missing or not an array.
    """
    try:
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (*FAULTS, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not an array: {first_line(error)}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise DataError(f"{path}: an archive of arrays, not one array. Rename the file to .npz")
    return array

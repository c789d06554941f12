"""Zip files of other programs."""

from __future__ import annotations

import struct
import zipfile
import zlib

FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    # The standard library raises these for some damaged headers.
    ValueError,
    OverflowError,
    NotImplementedError,
)
"""What `zipfile` raises for damaged files, besides `OSError`."""

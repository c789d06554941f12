"""Files that torch saved, read as data: no code in them runs."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import torch

from manymatch.foreign.pickles import MAX_BYTES
from manymatch.system.errors import DataError


def load_tensors(path: Path) -> Any:
    """What torch saved at `path`, tensors and plain data alone; in memory only where they were
    saved in torch's form of before 2020."""
    try:
        zipped = zipfile.is_zipfile(path)
        if zipped:
            _refuse_packed(path)
        elif path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path}: larger than {MAX_BYTES:,} B, and it must be read whole")
        return torch.load(path, "cpu", weights_only=True, mmap=zipped)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception:  # torch raises almost anything, and advises to run the code in the file.
        raise DataError(
            f"{path}: not tensors that torch saved, damaged, or holding more than tensors and "
            "plain data, which would have to be run as code and is refused"
        ) from None


def _refuse_packed(path: Path) -> None:
    """torch packs nothing: what is packed could unfold to more memory than there is."""
    with zipfile.ZipFile(path) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise DataError(f"{path}: a compressed archive, which torch does not write")

"""Reading files of `torch.save` as data, without running code."""

import io
import pickletools
import re
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from manymatch.util.errors import ConfigError, DataError
from manymatch.util.pickles import MAX_BYTES
from manymatch.util.regular_file import regular_path

_GLOBALS = re.compile(
    r"collections OrderedDict|torch (Size|device|[a-z]+\d\w*|bool|\w+Storage)"
    r"|torch\.storage UntypedStorage|torch\.nn\.parameter Parameter"
    r"|torch\._utils _rebuild_(tensor(_v2|_v3)?|parameter)"
)
"""What the pickle of dense tensors names. torch allows more, such as `bytearray(n)`, which fills
the memory."""


def load_tensors(path: Path) -> Any:
    """The tensors and plain data that torch saved at `path`.

    The tensors are mapped from the disk. Files in torch's format of before 2020 are read into
    memory.

    Raises:
        DataError: the file is missing or damaged, or contains more than tensors and plain data.
    """
    try:
        with regular_path(path) as name:
            with Path(name).open("rb") as stream:
                zipped = stream.read(4) == b"PK\x03\x04"  # as torch decides
            if zipped:
                with zipfile.ZipFile(name) as archive:
                    kinds = {member.compress_type for member in archive.infolist()}
                if kinds - {zipfile.ZIP_STORED}:  # it could fill the memory
                    raise DataError(f"{path}: a compressed archive, which torch does not write")
                pickled = torch._C.PyTorchFileReader(str(name)).get_record("data.pkl")
                _check_globals(path, io.BytesIO(pickled))
            elif Path(name).stat().st_size > MAX_BYTES:
                raise DataError(
                    f"{path}: larger than {MAX_BYTES:,} B, which is the limit for this old format"
                )
            else:
                with Path(name).open("rb") as stream:
                    for _ in range(5):  # number, version, system, content, keys of the storages
                        _check_globals(path, stream)
            return torch.load(name, "cpu", weights_only=True, mmap=zipped)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception:  # torch raises almost any exception, and advises running the code.
        raise DataError(
            f"{path}: not a file of torch.save, damaged, or more than tensors and plain data, "
            "which is refused because it would run code"
        ) from None


def _check_globals(path: Path, stream: BinaryIO) -> None:
    """Check that the pickle at the stream's place names nothing but `_GLOBALS`."""
    for opcode, named, _ in pickletools.genops(stream):
        if opcode.name == "GLOBAL" and not _GLOBALS.fullmatch(str(named)):
            raise DataError(
                f"{path}: not a file of torch.save with dense tensors and plain data alone: "
                f"{str(named)[:60]!a}, which is refused because it could run code or fill the "
                "memory"
            )


def load_weights(path: Path, network: str) -> dict[str, Tensor]:
    """The tensors by name that torch saved at `path`, the weights of `network`.

    Raises:
        ConfigError: the file is missing or damaged, or contains something else.
    """
    try:
        tensors = load_tensors(path)
    except DataError as error:
        raise ConfigError(f"{error}. Set weights to those of {network}") from None
    if isinstance(tensors, dict) and all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in tensors.items()
    ):
        return tensors
    raise ConfigError(f"{path}: not the weights of {network}: no tensors by name")

"""Text files line by line, with line numbers for error messages."""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from manymatch.util.errors import DataError
from manymatch.util.regular_file import open_regular

_LONGEST = 2**20
_UNPACKED, _RATIO = 2**26, 100
"""A text unpacks to this number of bytes, or to this multiple of its file. Captions reach 10."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def numbered_lines(path: Path, encoding: str | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers from 1, without line ends.

    A file with the suffix .gz is decompressed. A byte order mark is skipped.

    Args:
        encoding: as Python names encodings. None: UTF-16 if the file begins with its mark, else
            UTF-8.

    Raises:
        DataError: the file is damaged or not in the encoding, unpacks to far more than texts do, or
            has a line of a million bytes.
    """
    for number, line in enumerate(_raw_lines(path, encoding), start=1):
        if len(line) >= _LONGEST:
            raise DataError(
                f"{path}:{number}: a line of a million bytes. Check that this is a text file"
            )
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}:{number}: byte 0x{line[error.start]:02x} at column {error.start + 1} is "
                "not UTF-8. Save the file as UTF-8 (Excel calls this CSV UTF-8), or convert the "
                "file: iconv -f CP1252 -t UTF-8 OLD > NEW"
            ) from None
        if text.strip():
            yield number, text


def marked_encoding(stream: BinaryIO | gzip.GzipFile) -> str | None:
    """UTF-16 if a file that has just been opened begins with its mark, else None."""
    encoding = "utf-16" if stream.read(2) in _UTF16 else None
    stream.seek(0)
    return encoding


def _raw_lines(path: Path, encoding: str | None) -> Iterator[bytes]:
    """The lines as bytes in UTF-8, or in what a file without a known encoding holds."""
    with open_regular(path) as file:
        packed = path.suffix == ".gz"
        stream = gzip.GzipFile(fileobj=file) if packed else file
        most = max(_UNPACKED, _RATIO * os.fstat(file.fileno()).st_size)
        try:
            encoding = encoding or marked_encoding(stream)
            if encoding is None:
                lines = iter(lambda: stream.readline(_LONGEST), b"")
            else:
                text = io.TextIOWrapper(stream, encoding, newline="\n")
                lines = map(str.encode, iter(lambda: text.readline(_LONGEST), ""))
            for line in lines:
                if packed and stream.tell() > most:
                    raise DataError(
                        f"{path}: unpacks to more than {most:,} bytes, which no texts do. Unpack "
                        "the file by gunzip, and name the unpacked one"
                    )
                yield line
        except UnicodeError as error:
            raise DataError(
                f"{path}: not {encoding}: {error}. Name the file's encoding by --encoding"
            ) from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(
                f"{path}: damaged or cut off ({error}). Download the file again"
            ) from None

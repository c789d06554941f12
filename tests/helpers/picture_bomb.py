"""A small PNG that says it has many pixels."""

import struct
import zlib


def bomb(width, height):
    """A PNG of `width x height` pixels, with data for a few of them."""
    chunks = [
        b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0),
        b"IDAT" + zlib.compress(bytes(1000)),
        b"IEND",
    ]
    framed = (
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        for chunk in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)

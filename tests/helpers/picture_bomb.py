"""Small pictures that take much memory: of many pixels, and of many parts."""

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


def strips(count, order="<"):
    """A TIFF file of one column, each pixel of which is a strip."""
    entries = {256: 1, 257: count, 258: 8, 259: 1, 262: 1, 273: 110, 277: 1, 278: 1, 279: 110}
    many = (273, 279)
    packed = b"".join(
        struct.pack(f"{order}HHII", tag, 4, count if tag in many else 1, value)
        for tag, value in entries.items()
    )
    head = {"<": b"II", ">": b"MM"}[order] + struct.pack(f"{order}HIH", 42, 8, len(entries))
    return (head + packed).ljust(110, b"\0") + bytes(4 * count)

"""Writes PNG: 8 bits a channel, RGB, every row filtered by its difference to the one above, which suits gradients."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
UP = 2


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def encode(width, height, rows, text):
    """`rows` gives `height` rows of `3 * width` bytes; `text` is stored as the title."""
    packer = zlib.compressobj(6)
    packed, above = [], bytes(3 * width)
    for row in rows:
        packed.append(packer.compress(bytes([UP]) + bytes([(a - b) & 255 for a, b in zip(row, above)])))
        above = row
    packed.append(packer.flush())
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    title = b"Title\0\0\0\0\0" + text.encode("utf-8", "replace")
    parts = ((b"IHDR", header), (b"iTXt", title), (b"IDAT", b"".join(packed)), (b"IEND", b""))
    return SIGNATURE + b"".join(chunk(kind, content) for kind, content in parts)

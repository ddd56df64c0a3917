"""A decoder of HdrHistogram's V2 encoding, written from the published format, for three digits and a lowest value of 1."""

from __future__ import annotations

import base64
import struct


def decode(text: str) -> dict[int, int]:
    """Counts by the lowest value that each place stands for."""
    data = base64.b64decode(text)
    cookie, length, offset, digits, lowest, highest, ratio = struct.unpack_from(">iiiiqqd", data)
    # The low byte of a V2 cookie may carry a word size that nothing depends on.
    assert cookie & ~0xF0 == 0x1C849303, hex(cookie)
    assert (offset, digits, lowest, ratio) == (0, 3, 1, 1.0)
    assert highest >= 2 and len(data) == 40 + length
    counts: dict[int, int] = {}
    position, place = 40, 0
    while position < len(data):
        number, position = _signed(data, position)
        if number < 0:
            place -= number
        else:
            if number:
                counts[_lowest_of(place)] = number
            place += 1
    return counts


def _signed(data: bytes, position: int) -> tuple[int, int]:
    """ZigZag LEB128; a ninth byte has all its bits in the number."""
    number = 0
    for count in range(9):
        byte = data[position + count]
        if count == 8:
            number |= byte << 56
            break
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            break
    return (number >> 1) ^ -(number & 1), position + count + 1


def _lowest_of(place: int) -> int:
    bucket, sub_bucket = (place >> 10) - 1, (place & 1023) + 1024
    return sub_bucket - 1024 if bucket < 0 else sub_bucket << bucket

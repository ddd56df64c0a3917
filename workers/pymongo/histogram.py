"""A distribution of times: counts by microsecond, the exact sum, and its encoding as an HdrHistogram."""

from __future__ import annotations

import base64
import struct
from typing import Any, Optional

# Times above this are recorded as this, and counted as clipped.
CEILING_US = 120_000_000

# Three significant digits: values below 2048 have a place each, then every doubling of the value has 1024.
_DIGITS = 3
_SUB_BUCKETS = 2048
_HALF = _SUB_BUCKETS // 2
_HALF_BITS = 10
_COOKIE = 0x1C849303 | 0x10


class Latencies:
    """Times, from none to many."""

    __slots__ = ("counts", "sum_ns", "clipped")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.sum_ns = 0
        self.clipped = 0

    def record(self, nanos: int) -> None:
        """Adds one time; microseconds are rounded up, and are at least 1."""
        self.sum_ns += nanos
        us = (nanos + 999) // 1000 or 1
        if us > CEILING_US:
            self.clipped += 1
            us = CEILING_US
        counts = self.counts
        counts[us] = counts.get(us, 0) + 1

    def to_json(self) -> Optional[dict[str, Any]]:
        """As snapshots carry it; None when it is empty."""
        if not self.counts:
            return None
        hdr = base64.b64encode(encode(self.counts)).decode("ascii")
        return {"hdr": hdr, "sum_ns": self.sum_ns, "clipped": self.clipped}


def place(value: int) -> int:
    """The index of a value's count in the histogram."""
    bucket = (value | (_SUB_BUCKETS - 1)).bit_length() - (_HALF_BITS + 1)
    return ((bucket + 1) << _HALF_BITS) + (value >> bucket) - _HALF


def encode(counts: dict[int, int]) -> bytes:
    """HdrHistogram's V2 encoding, uncompressed: a header, then counts in order with runs of zeros as one number."""
    places: dict[int, int] = {}
    for value, count in counts.items():
        index = place(value)
        places[index] = places.get(index, 0) + count
    payload, expected = bytearray(), 0
    for index in sorted(places):
        if index > expected:
            _put_signed(payload, expected - index if index - expected > 1 else 0)
        _put_signed(payload, places[index])
        expected = index + 1
    # No offset of indexes, lowest discernible value 1, the highest trackable one at least twice that, and no scale.
    header = struct.pack(">iiiiqqd", _COOKIE, len(payload), 0, _DIGITS, 1, max(2, *counts), 1.0)
    return header + bytes(payload)


def _put_signed(out: bytearray, number: int) -> None:
    """ZigZag LEB128: seven bits a byte, the lowest first, the sign in the lowest bit."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)

"""When operations are due: seeded, and without a look at any clock.

Arrivals are laid out in expected counts and mapped to time through the inverse of the cumulative rate. Equal steps make
even arrivals, exponential steps of mean 1 a Poisson process of that rate.
"""

from __future__ import annotations

import math
import re
from typing import Any, Iterator, NamedTuple

from splitmix import ARRIVALS, stream

_UNITS = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_SPAN = re.compile(r"(\d+)(h|ms|us|ns|m|s)")


def span_ns(text: str) -> int:
    """A length of time as plans write it, like 1m30s or 250ms, in nanoseconds."""
    if text == "0":
        return 0
    parts = _SPAN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"'{text}' is no length of time")
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def rate_per_second(text: str) -> float:
    """A rate as plans write it, like 400/s."""
    number, slash, unit = text.partition("/")
    if slash and unit != "s":
        raise ValueError(f"'{text}' is no rate per second")
    return float(number)


def _seconds(span: int) -> float:
    return span // 1_000_000_000 + (span % 1_000_000_000) / 1e9


class _Piece(NamedTuple):
    """A stretch of time in which the rate changes in a straight line."""

    start_s: float
    # Expected arrivals before its start, and before its end.
    before: float
    after: float
    rate: float
    # Change of rate per second.
    slope: float

    def time_of(self, position: float) -> int:
        """Solves rate*x + slope*x*x/2 = position - before, in the form that does not cancel for small slopes."""
        wanted = position - self.before
        if wanted <= 0.0:
            return int(self.start_s * 1e9)
        root = math.sqrt(max(self.rate * self.rate + 2.0 * self.slope * wanted, 0.0))
        return int((self.start_s + 2.0 * wanted / (self.rate + root)) * 1e9)


def _pieces(warmup: str, stages: list[dict[str, Any]]) -> list[_Piece]:
    lines = [(s["for"], rate_per_second(s["from"]), rate_per_second(s["to"])) for s in stages]
    # Warm-up runs at the first stage's starting rate, and the last stage's final rate goes on.
    lines.insert(0, (warmup, lines[0][1], lines[0][1]))
    pieces, start_s, before = [], 0.0, 0.0
    for span, low, high in lines:
        length = _seconds(span_ns(span))
        if length <= 0.0:
            continue
        after = before + length * (low + high) / 2.0
        pieces.append(_Piece(start_s, before, after, low, (high - low) / length))
        start_s, before = start_s + length, after
    pieces.append(_Piece(start_s, before, math.inf, lines[-1][2], 0.0))
    return pieces


def due_times(warmup: str, stages: list[dict[str, Any]], arrivals: str, seed: int) -> Iterator[int]:
    """When operations are due, in nanoseconds since Go: in order, and without end."""
    if arrivals not in ("poisson", "even"):
        raise ValueError(f"there are no '{arrivals}' arrivals here")
    random, even = stream(seed, ARRIVALS, 0), arrivals == "even"
    # Where the next arrival is, in expected arrivals. 1 - u is above 0, so the logarithm is finite.
    position = 0.0 if even else -math.log(1.0 - random.unit())
    for piece in _pieces(warmup, stages):
        while position < piece.after:
            yield piece.time_of(position)
            position += 1.0 if even else -math.log(1.0 - random.unit())


class Segments:
    """The parts of a trial by the clock of intended starts."""

    def __init__(self, parts: list[dict[str, Any]]) -> None:
        self.ends = [part["end_ns"] for part in parts if part["end_ns"] is not None]
        self.last = len(parts) - 1
        # Before the cool-down; nothing that is due later is measured.
        self.measured_until_ns: int = parts[-1]["start_ns"]

    def at(self, offset_ns: int) -> int:
        """The index of the part that an offset falls in: as few of them as there are, so they are looked through."""
        return min(sum(end <= offset_ns for end in self.ends), self.last)

    def is_measured(self, segment: int) -> bool:
        return 0 < segment < self.last

    def boundary_after(self, now_ns: int) -> int:
        """The next whole second or border."""
        whole = (now_ns // 1_000_000_000 + 1) * 1_000_000_000
        return min([whole] + [end for end in self.ends if end > now_ns])

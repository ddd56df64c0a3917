"""The random numbers behind everything that a seed fixes.

SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), in streams: each purpose and index has a generator of its own, so that
the n-th operation of a run draws the same numbers in any worker and language.
"""

from __future__ import annotations

MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_TO_UNIT = 2.0**-53


def _purpose(name: bytes) -> int:
    return int.from_bytes(name, "big")


OPERATION = _purpose(b"operatio")
DOCUMENT = _purpose(b"document")
MIX = _purpose(b"shuffled")
ARRIVALS = _purpose(b"arrivals")
BACKOFF = _purpose(b"backoffs")


class Random:
    """A SplitMix64 generator."""

    __slots__ = ("state",)

    def __init__(self, seed: int) -> None:
        self.state = seed & MASK

    def next(self) -> int:
        """The next 64 random bits."""
        self.state = z = (self.state + _STEP) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """A number in 0..bound, by one draw; 0 when the bound is 0."""
        return self.next() * bound >> 64

    def between(self, low: int, high: int) -> int:
        """A number in low..=high, by one draw."""
        return low + self.below(high - low + 1)

    def unit(self) -> float:
        """A number in 0.0..1.0: the top 53 bits of one draw."""
        return (self.next() >> 11) * _TO_UNIT


def stream(seed: int, purpose: int, index: int) -> Random:
    """The generator of one purpose and index.

    Its seed is output number `index` of the generator that is seeded by the first output for `seed XOR purpose`.
    """
    base = Random(seed ^ purpose).next()
    # Output number n depends on the state before it alone, which is n steps from the start.
    return Random(Random(base + _STEP * index).next())

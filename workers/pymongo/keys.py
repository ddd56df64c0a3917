"""Which of the documents an operation is about: YCSB's distributions, as functions of a random stream."""

from __future__ import annotations

from typing import Callable, Optional

from splitmix import MASK, Random

THETA = 0.99
_EXPONENT = 1.0 - THETA
_SECOND = 1.0 + 0.5**THETA

# YCSB's scrambled zipfian ranks this many items, however many documents there are, and this is the sum over them.
_SCRAMBLED_ITEMS = 10_000_000_001
_SCRAMBLED_ZETA = 26.46902820178302

# How many terms of zeta are summed one by one.
_SUMMED = 1024

# random stream, how often the operation came before, lowest key never handed out -> key
Pick = Callable[[Random, int, int], int]


def _sums() -> list[float]:
    sums, total = [0.0], 0.0
    for i in range(1, _SUMMED + 1):
        total += 1.0 / float(i) ** THETA
        sums.append(total)
    return sums


_SUMS = _sums()


def zeta(n: int) -> float:
    """The sum of 1/i^0.99 for i in 1..=n; beyond the summed terms by the Euler-Maclaurin formula."""
    if n <= _SUMMED:
        return _SUMS[n]
    low, high = float(_SUMMED), float(n)
    low_power, high_power = low**_EXPONENT, high**_EXPONENT
    integral = (high_power - low_power) / _EXPONENT
    ends = (high_power / high - low_power / low) / 2.0
    slopes = THETA * (low_power / (low * low) - high_power / (high * high)) / 12.0
    return _SUMS[_SUMMED] + integral + ends + slopes


class Zipfian:
    """Ranks 0..items in proportion to 1/(rank + 1)^0.99 (Gray et al. 1994, as YCSB has it)."""

    def __init__(self, items: int, zeta_of_items: Optional[float] = None) -> None:
        self.items = items
        self.zeta = zeta(items) if zeta_of_items is None else zeta_of_items
        # With two items or fewer it is not needed, and would divide by zero.
        self.eta = (1.0 - (2.0 / items) ** _EXPONENT) / (1.0 - zeta(2) / self.zeta) if items > 2 else 0.0

    def rank(self, u: float) -> int:
        """The rank at a place in 0.0..1.0 of the cumulated distribution."""
        uz = u * self.zeta
        if uz < 1.0 or self.items < 2:
            return 0
        if uz < _SECOND or self.items == 2:
            return 1
        rank = self.items * (self.eta * u - self.eta + 1.0) ** (1.0 / _EXPONENT)
        return min(int(rank), self.items - 1)


def fnv_hash(number: int) -> int:
    """YCSB's fnvhash64: FNV-1a over the eight octets, and of that as a signed number the absolute value."""
    result = 0xCBF29CE484222325
    for octet in number.to_bytes(8, "little"):
        result = (result ^ octet) * 1099511628211 & MASK
    return (1 << 64) - result if result >> 63 else result


def picker(distribution: str, shares: dict[str, float], documents: int) -> Pick:
    """What picks keys of a collection that was loaded with 0..documents; `shares` are hotspot's."""
    makers: dict[str, Callable[[], Pick]] = {
        "uniform": lambda: lambda random, occurrence, next_key: random.below(documents),
        "zipfian": lambda: _zipfian(documents),
        "latest": lambda: _latest(documents),
        "sequential": lambda: lambda random, occurrence, next_key: occurrence % documents if documents else 0,
        "hotspot": lambda: _hotspot(documents, **shares),
        "next": lambda: lambda random, occurrence, next_key: next_key,
    }
    if distribution not in makers:
        raise ValueError(f"there is no distribution of keys '{distribution}' here")
    return makers[distribution]()


def _zipfian(documents: int) -> Pick:
    ranks = Zipfian(_SCRAMBLED_ITEMS, _SCRAMBLED_ZETA)

    def pick(random: Random, occurrence: int, next_key: int) -> int:
        rank = ranks.rank(random.unit())
        return fnv_hash(rank) % documents if documents else 0

    return pick


def _latest(documents: int) -> Pick:
    loaded = Zipfian(documents)

    def pick(random: Random, occurrence: int, next_key: int) -> int:
        u = random.unit()
        back = loaded.rank(u) if next_key == documents else Zipfian(next_key).rank(u)
        return max(0, next_key - 1 - back)

    return pick


def _hotspot(documents: int, hot_set: float, hot_operations: float) -> Pick:
    hot = min(int(documents * hot_set), documents)
    cold = documents - hot

    def pick(random: Random, occurrence: int, next_key: int) -> int:
        wants_hot = random.unit() < hot_operations
        if (wants_hot and hot > 0) or cold == 0:
            return random.below(hot)
        return hot + random.below(cold)

    return pick

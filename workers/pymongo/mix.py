"""Which operation the n-th one is.

Every block of operations holds each operation exactly in its share, in an order shuffled by seed and block. So how often
an operation, or a new key, came before the n-th is a matter of arithmetic: the same in any worker.
"""

from __future__ import annotations

import threading
from functools import reduce
from math import gcd
from typing import NamedTuple

from splitmix import MIX, stream

# Small mixes are repeated up to about this many operations a block.
_BLOCK = 1000


class Share(NamedTuple):
    """One entry of the mix."""

    weight: int
    # How many new keys one execution takes.
    new_keys: int


class Place(NamedTuple):
    """What the n-th operation is."""

    operation: int
    # How many of the same operation come before it.
    occurrence: int
    # How many new keys all operations before it take.
    new_keys: int


class Mix:
    """The whole endless sequence."""

    def __init__(self, seed: int, shares: list[Share]) -> None:
        divisor = reduce(gcd, (share.weight for share in shares), 0)
        if divisor == 0:
            raise ValueError("a mix needs a weight above 0")
        total = sum(share.weight // divisor for share in shares)
        repeat = -(-_BLOCK // total)
        self._seed = seed
        self._per_block = [share.weight // divisor * repeat for share in shares]
        self._block = [operation for operation, count in enumerate(self._per_block) for _ in range(count)]
        self._new_keys = [share.new_keys for share in shares]
        self._new_keys_per_block = sum(count * keys for count, keys in zip(self._per_block, self._new_keys))
        # Two, because around a border both sides are under way.
        self._shuffled: list[tuple[int, list[Place]]] = [(-1, []), (-1, [])]
        self._lock = threading.Lock()

    def at(self, n: int) -> Place:
        """What the n-th operation is."""
        number, within = divmod(n, len(self._block))
        known, places = self._shuffled[number % 2]
        if known != number:
            places = self._shuffle_once(number)
        operation, occurrence, new_keys = places[within]
        return Place(
            operation,
            number * self._per_block[operation] + occurrence,
            number * self._new_keys_per_block + new_keys,
        )

    def _shuffle_once(self, number: int) -> list[Place]:
        with self._lock:
            known, places = self._shuffled[number % 2]
            if known != number:
                places = self._shuffle(number)
                self._shuffled[number % 2] = (number, places)
            return places

    def _shuffle(self, number: int) -> list[Place]:
        """Fisher-Yates from the last place down, then counts from the first place up."""
        random = stream(self._seed, MIX, number)
        order = self._block[:]
        for last in range(len(order) - 1, 0, -1):
            other = random.below(last + 1)
            order[last], order[other] = order[other], order[last]
        seen, keys, places = [0] * len(self._per_block), 0, []
        for operation in order:
            places.append(Place(operation, seen[operation], keys))
            seen[operation] += 1
            keys += self._new_keys[operation]
        return places

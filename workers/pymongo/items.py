"""The items of a bulk, each with a fate of its own, and those that no server takes."""

from __future__ import annotations

import json
import threading
from typing import Any, NamedTuple, Optional

from bson import json_util
from pymongo import errors

import failures

# What is kept between two snapshots: items, and bytes of what they would write.
_MOST_LETTERS = 1000
_MOST_BYTES = 1 << 20

# Items have no labels, so it is the code alone that tells a rejection.
_RATE_LIMIT_EXCEEDED = 462


class Bulk(NamedTuple):
    """How a bulk is written."""

    count: int
    # Whether the first failure ends it.
    ordered: bool


class Hopeless(NamedTuple):
    """An item that no server takes."""

    item: int
    # What the server said of it; None when it was not tried because one before it is hopeless.
    error: Optional[dict[str, Any]]


class Items:
    """Which items of an operation are still to be written."""

    def __init__(self) -> None:
        # Positions among all items, in their order; None for all.
        self._left: Optional[list[int]] = None

    def pick(self, items: list[Any]) -> list[Any]:
        return items if self._left is None else [items[position] for position in self._left]

    def any(self) -> bool:
        return self._left is None or bool(self._left)

    def settle(self, bulk: Bulk, error: Exception) -> Optional[list[Hopeless]]:
        """Strikes out what a call has written and what will never be, the latter of which is returned, in its order.

        None when the error says nothing of single items: all of them have to go again then. A hopeless item of an ordered
        bulk takes those behind it with it, as they were meant to come after it.
        """
        if not isinstance(error, errors.BulkWriteError):
            return None
        told = {each["index"]: each for each in error.details.get("writeErrors") or ()}
        sent = list(range(bulk.count)) if self._left is None else self._left
        left: list[int] = []
        hopeless: list[Hopeless] = []
        untried: list[int] = []
        for position, item in enumerate(sent):
            if position in told and _may_pass(told[position].get("code")):
                left.append(item)
            elif position in told:
                hopeless.append(Hopeless(item, told[position]))
            elif bulk.ordered and told and position > min(told):
                untried.append(item)
        if bulk.ordered and hopeless:
            hopeless += [Hopeless(item, None) for item in untried]
        else:
            left = sorted(left + untried)
        self._left = left
        return hopeless


def _may_pass(code: Optional[int]) -> bool:
    return code == _RATE_LIMIT_EXCEEDED or failures.passes(code)


class LetterBox:
    """Where workers leave items that no server takes, until the next snapshot takes them along."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._letters: list[dict[str, Any]] = []
        self._left_out = self._bytes = 0

    def put(self, letter: dict[str, Any], write: dict[str, Any]) -> None:
        """Adds one, or counts it where there is no room."""
        text = json_util.dumps(write, json_options=json_util.RELAXED_JSON_OPTIONS)
        length = len(text) + len(letter["message"])
        with self._lock:
            if self._bytes + length > _MOST_BYTES or len(self._letters) == _MOST_LETTERS:
                self._left_out += 1
                return
            self._bytes += length
            self._letters.append({**letter, "write": json.loads(text)})

    def take(self) -> dict[str, Any]:
        """All since the last time; empty for none."""
        with self._lock:
            taken = {"letters": self._letters, "left_out": self._left_out}
            self._clear()
        return taken if taken["letters"] or taken["left_out"] else {}

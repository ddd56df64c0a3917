"""What the application does about calls that take too long, and about calls that fail."""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager, Optional

import pymongo

from schedule import span_ns
from splitmix import BACKOFF, Random, stream

_KINDS = ("immediate", "fixed", "exponential", "full_jitter", "equal_jitter", "decorrelated")


class Policy:
    """The plan's backoff: further calls, on top of the driver's own retries."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.kind: str = plan["kind"]
        # Calls in all.
        self.max_attempts: int = plan["max_attempts"]
        self.base_ns, self.cap_ns = span_ns(plan["base"]), span_ns(plan["cap"])
        others = set(plan) - {"kind", "max_attempts", "base", "cap"}
        if self.kind not in _KINDS or others:
            raise ValueError(f"the PyMongo worker knows no backoff like {plan}")


class Pauses:
    """The pauses of one operation."""

    def __init__(self, policy: Policy, random: Random) -> None:
        self._policy, self._random = policy, random
        self._retries, self._last_ns = 0, policy.base_ns
        # Their sum so far.
        self.paused_ns = 0

    @classmethod
    def of_operation(cls, policy: Policy, seed: int, n: int) -> Pauses:
        return cls(policy, stream(seed, BACKOFF, n))

    def next(self) -> Optional[int]:
        """The pause in nanoseconds before the next call after one that failed; None when there have been enough."""
        if self._retries + 1 >= self._policy.max_attempts:
            return None
        pause = self._pause()
        self._retries += 1
        self._last_ns = pause
        return pause

    def _pause(self) -> int:
        kind, base, cap = self._policy.kind, self._policy.base_ns, self._policy.cap_ns
        exponential = min(base << min(self._retries, 32), cap)
        if kind == "immediate":
            return 0
        if kind == "fixed":
            return min(base, cap)
        if kind == "exponential":
            return exponential
        if kind == "full_jitter":
            return round(exponential * self._random.unit())
        if kind == "equal_jitter":
            return exponential // 2 + round(exponential // 2 * self._random.unit())
        most = max(self._last_ns * 3, base)
        return min(base + round((most - base) * self._random.unit()), cap)


class Deadline:
    """What bounds a call: PyMongo's own deadline, where the plan has one."""

    # PyMongo takes what a round trip needs off the time that it gives the server, so that calls end a little early.
    _EARLY = 0.9

    def __init__(self, plan: Optional[dict[str, Any]]) -> None:
        given = {name: value for name, value in (plan or {}).items() if value is not None}
        self._ns: Optional[int] = None
        if "operation" not in given and "max_time" not in given:
            return
        known = {"operation", "on_timeout", "grace"}
        if set(given) - known or given.get("on_timeout", "cancel") != "cancel":
            raise ValueError("the PyMongo worker knows no [timeout] but `operation`: PyMongo's deadline is what ends a call")
        if not hasattr(pymongo, "timeout"):
            raise ValueError(f"[timeout] needs PyMongo 4.2 or later; this is {pymongo.version}")
        self._ns = span_ns(given["operation"])

    def bound(self) -> ContextManager[Any]:
        """Bounds what is done within."""
        return contextlib.nullcontext() if self._ns is None else pymongo.timeout(self._ns / 1e9)

    def has_passed(self, took_ns: int) -> bool:
        """Whether a call that took so long has been ended by it."""
        return self._ns is not None and took_ns >= self._ns * self._EARLY

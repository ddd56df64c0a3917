"""What the application does about calls that take too long, and about calls that fail."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, Optional

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


def has_deadline(plan: Optional[dict[str, Any]]) -> bool:
    """Whether the plan bounds calls at all."""
    return any((plan or {}).get(name) is not None for name in ("operation", "max_time"))


def deadline(plan: Optional[dict[str, Any]]) -> Callable[[], ContextManager[Any]]:
    """What bounds a call: PyMongo's own deadline, where the plan has one."""
    if not has_deadline(plan):
        return contextlib.nullcontext
    known = {"operation", "on_timeout", "grace", "max_time"}
    if set(plan) - known or plan.get("on_timeout", "cancel") != "cancel" or plan.get("max_time") is not None:
        raise ValueError("the PyMongo worker knows no [timeout] but `operation`: PyMongo's deadline is what ends a call there")
    if not hasattr(pymongo, "timeout"):
        raise ValueError(f"[timeout] needs PyMongo 4.2 or later; this is {pymongo.version}")
    seconds = span_ns(plan["operation"]) / 1e9
    return lambda: pymongo.timeout(seconds)

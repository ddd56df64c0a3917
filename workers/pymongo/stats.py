"""What is known of a set of operations: counts, times by cause, and distributions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

from histogram import Latencies

POOL_COUNTS = (
    "created", "closed_stale", "closed_idle", "closed_error", "closed_dropped", "closed_pool_closed", "clears",
)  # fmt: skip


def _times() -> Any:
    return field(default_factory=Latencies)


@dataclass
class RetryStats:
    """Operations with the same number of retries."""

    ok: int = 0
    failed: int = 0
    gave_up: int = 0
    latency: Latencies = _times()


@dataclass
class OpStats:
    """Operations of one kind in one segment; the fields are those of snapshots."""

    offered: int = 0
    gave_up: int = 0
    calls: int = 0
    commands: int = 0
    repeated_commands: int = 0
    attempts: int = 0
    retries: int = 0
    rejected: int = 0
    retargeted: int = 0
    wait_ns: int = 0
    checkout_ns: int = 0
    attempt_ns: int = 0
    backoff_ns: int = 0
    latency_ns: int = 0
    latency: Latencies = _times()
    service: Latencies = _times()
    failed_latency: Latencies = _times()
    attempt_ok: Latencies = _times()
    attempt_rejected: Latencies = _times()
    checkout: Latencies = _times()
    lag: Latencies = _times()
    outcomes: dict[str, int] = field(default_factory=Counter)
    by_retries: dict[int, RetryStats] = field(default_factory=dict)
    backoff: dict[int, Latencies] = field(default_factory=dict)


@dataclass
class ServerStats:
    """What the client saw of one server."""

    attempts: int = 0
    rejected: int = 0
    retargeted: int = 0
    checkout: Latencies = _times()


def to_json(value: Any) -> Any:
    """Statistics as snapshots carry them."""
    if isinstance(value, Latencies):
        return value.to_json()
    if isinstance(value, dict):
        return {str(key): to_json(part) for key, part in sorted(value.items())}
    if isinstance(value, int):
        return value
    return {part.name: to_json(getattr(value, part.name)) for part in fields(value)}

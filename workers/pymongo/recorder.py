"""Folds the workers' records into snapshots, in a thread of its own."""

from __future__ import annotations

import time
from collections import Counter, deque
from itertools import repeat
from typing import Any, Callable, Iterator, Optional

from failures import Failure, FailureClass
from histogram import Latencies
from ledger import Ledger
from mix import Mix
from records import GAVE_UP, NOWHERE, OK, REJECTED, SERVED, TIMED_OUT, Attempt, Cell, Ended, Started
from schedule import Segments
from stats import POOL_COUNTS, OpStats, RetryStats, ServerStats, to_json

# Operations and backoffs with more retries are counted with these.
_MOST_RETRIES = 255
# Beyond this many classes errors are counted as kind `other`: memory must not grow with errors.
_MOST_CLASSES = 256
_EXAMPLE = 200
# After so many records the other threads get a turn: a thread that computes can keep the interpreter for milliseconds.
_AT_A_TIME = 50


class _Seen:
    def __init__(self, at_ns: int) -> None:
        self.count, self.first_ns, self.last_ns = 0, at_ns, at_ns


class Recorder:
    """The state between two snapshots. `due` yields when operations are due in the open model; None in the closed one."""

    def __init__(
        self, ledger: Ledger, mix: Mix, segments: Segments, told_apart: list[bool], first: int, due: Optional[Iterator[int]],
        redact: Callable[[str], str],
    ) -> None:  # fmt: skip
        self._ledger, self._mix, self._segments, self._redact = ledger, mix, segments, redact
        # By operation: whether it is known when its attempts ended.
        self._told_apart = told_apart
        self._due = due
        self._next_due_ns = next(due) if due else 0
        # Due operations that no worker has begun, by when they are due, and the first one's number.
        self._waiting: deque[int] = deque()
        self._first_waiting = self._first = first
        # What happened after the end of the interval that is being gathered.
        self._early: list[Any] = []
        self._examples: dict[FailureClass, str] = {}
        self._pools: list[Counter] = []
        self._sequence = 0
        self.start_ns = 0
        self._frozen_at: Optional[int] = None
        # Operations that workers have begun, and those of them that are under way no more.
        self._started = self._over = 0
        self._offered = [0] * len(told_apart)
        self.ended = [0] * len(told_apart)
        # Measured operations that were offered and have no outcome yet.
        self.measured_open = 0
        # Measured operations whose outcome is that the run was cut.
        self.cut_off = 0
        self._begin_interval()

    def _begin_interval(self) -> None:
        self._cells: dict[tuple[int, int], OpStats] = {}
        self._servers: list[ServerStats] = []
        self._errors: dict[tuple[int, int, str, FailureClass], _Seen] = {}

    def absorb(self, clock: Callable[[], int], frozen: Callable[[], Optional[int]], until: Optional[int]) -> int:
        """Takes what workers have left so far. Returns the time up to which all is known, at most `until`.

        The clock is read after the records are taken: whatever they speak of was due by then, so no outcome is counted
        before its offer. Nothing is due from the time on that `frozen` says, which is asked after the clock: a load that has
        ended by then has handed out nothing since.
        """
        records, early = self._ledger.records, self._early
        # Only what is there now: workers go on.
        taken = early + [records.popleft() for _ in repeat(None, len(records))]
        known_until = clock()
        self._frozen_at = frozen_at = frozen()
        self._early = []
        for number, record in enumerate(taken):
            if until is not None and record.at_ns >= until:
                self._early.append(record)
            else:
                self._fold(record)
            if number % _AT_A_TIME == _AT_A_TIME - 1:
                time.sleep(0)
        if until is not None:
            known_until = min(known_until, until)
        self._offer_until(known_until if frozen_at is None else min(known_until, frozen_at))
        return known_until

    def _offer_until(self, offset_ns: int) -> None:
        if self._due is None:
            return
        while self._next_due_ns < offset_ns:
            n = self._first_waiting + len(self._waiting)
            self._offer(self._segments.at(self._next_due_ns), self._mix.at(n).operation)
            self._waiting.append(self._next_due_ns)
            self._next_due_ns = next(self._due)

    def _cell(self, key: tuple[int, int]) -> OpStats:
        stats = self._cells.get(key)
        if stats is None:
            stats = self._cells[key] = OpStats()
        return stats

    def _offer(self, segment: int, operation: int) -> None:
        self._cell((segment, operation)).offered += 1
        self._offered[operation] += 1
        self.measured_open += self._segments.is_measured(segment)

    def _settle(self, cell: tuple[int, int]) -> None:
        """Every outcome passes here once."""
        self.ended[cell[1]] += 1
        self.measured_open -= self._segments.is_measured(cell[0])

    def _fold(self, record: Any) -> None:
        if isinstance(record, Attempt):
            self._fold_attempt(record)
        elif isinstance(record, Ended):
            self._fold_ended(record)
        elif isinstance(record, Started):
            self._started += 1
            if self._due is None:
                self._offer(*record.cell)
            self._cell(record.cell).lag.record(record.lag_ns)
        else:
            self._over += 1
            self._cut(record.cell, "in_flight")

    def _fold_attempt(self, attempt: Attempt) -> None:
        stats, rejected = self._cell(attempt.cell), attempt.end == REJECTED
        stats.attempts += 1
        stats.rejected += rejected
        stats.retargeted += attempt.retargeted
        if attempt.retry == 0:
            stats.commands += 1
            stats.repeated_commands += not attempt.first_call
        else:
            stats.retries += 1
        if attempt.backoff_ns is not None:
            stats.backoff.setdefault(min(attempt.retry, _MOST_RETRIES), Latencies()).record(attempt.backoff_ns)
        if attempt.checkout_ns is not None:
            stats.checkout.record(attempt.checkout_ns)
        if attempt.round_trip_ns is not None:
            if rejected:
                stats.attempt_rejected.record(attempt.round_trip_ns)
            elif attempt.end == SERVED and self._told_apart[attempt.cell.operation]:
                stats.attempt_ok.record(attempt.round_trip_ns)
        if attempt.server != NOWHERE:
            server = self._server(attempt.server)
            server.attempts += 1
            server.rejected += rejected
            server.retargeted += attempt.retargeted
            if attempt.checkout_ns is not None:
                server.checkout.record(attempt.checkout_ns)
        self._count_error(attempt.cell, "attempt", attempt.failure, attempt.at_ns)

    def _server(self, number: int) -> ServerStats:
        while len(self._servers) <= number:
            self._servers.append(ServerStats())
        return self._servers[number]

    def _fold_ended(self, ended: Ended) -> None:
        stats, latency_ns = self._cell(ended.cell), ended.wait_ns + ended.service_ns
        stats.calls += ended.calls
        stats.wait_ns += ended.wait_ns
        stats.checkout_ns += ended.checkout_ns
        stats.attempt_ns += ended.attempt_ns
        stats.backoff_ns += ended.backoff_ns
        stats.latency_ns += latency_ns
        bucket = stats.by_retries.setdefault(min(ended.retries, _MOST_RETRIES), RetryStats())
        if ended.outcome == OK:
            stats.outcomes["ok"] += 1
            stats.latency.record(latency_ns)
            stats.service.record(ended.service_ns)
            bucket.ok += 1
            bucket.latency.record(latency_ns)
        else:
            gave_up = ended.outcome == GAVE_UP
            stats.outcomes["timed_out" if ended.outcome == TIMED_OUT else "failed"] += 1
            stats.gave_up += gave_up
            stats.failed_latency.record(latency_ns)
            bucket.failed += 1
            bucket.gave_up += gave_up
        self._over += 1
        self._settle(ended.cell)
        self._count_error(ended.cell, "operation", ended.failure, ended.at_ns)

    def _count_error(self, cell: Cell, level: str, failure: Optional[Failure], at_ns: int) -> None:
        if failure is None:
            return
        group = failure.group
        if group not in self._examples:
            if len(self._examples) >= _MOST_CLASSES:
                group = FailureClass("other")
            self._examples.setdefault(group, self._redact(failure.example)[:_EXAMPLE])
        seen = self._errors.setdefault((*cell, level, group), _Seen(at_ns))
        seen.count += 1
        seen.first_ns, seen.last_ns = min(seen.first_ns, at_ns), max(seen.last_ns, at_ns)

    @property
    def in_flight(self) -> int:
        """Operations given to the driver and not ended."""
        return self._started - self._over

    def cut(self, taken_back: list[tuple[int, int]], handed_out: int) -> None:
        """Gives every operation that is due and that no worker will take the outcome of a cut run: those that were
        handed out and taken back, and those that were never handed out, from number `handed_out` on."""
        for n, due_ns in taken_back:
            self._cut((self._segments.at(due_ns), self._mix.at(n).operation), "not_started")
        for n, due_ns in enumerate(self._waiting, self._first_waiting):
            if n >= handed_out:
                self._cut((self._segments.at(due_ns), self._mix.at(n).operation), "not_started")

    def _cut(self, cell: tuple[int, int], outcome: str) -> None:
        self._cell(cell).outcomes[outcome] += 1
        self.cut_off += self._segments.is_measured(cell[0])
        self._settle(cell)

    def behind_ns(self, now_ns: int) -> int:
        """How long the oldest operation that no worker has begun has been due."""
        # Operations are begun in their order.
        while self._waiting and self._first_waiting < self._first + self._started:
            self._waiting.popleft()
            self._first_waiting += 1
        return max(0, now_ns - self._waiting[0]) if self._waiting else 0

    def snapshot(self, end_ns: int, generator: dict[str, int]) -> dict[str, Any]:
        """The interval up to now; the next one starts here."""
        # A load that ended before its time cools down from there on.
        after_load = self._frozen_at is not None and self.start_ns >= self._frozen_at
        snapshot = {
            "sequence": self._sequence,
            "start_ns": self.start_ns,
            "end_ns": end_ns,
            "segment": self._segments.last if after_load else self._segments.at(self.start_ns),
            "cells": [
                {"segment": segment, "operation": operation, "stats": to_json(stats)}
                for (segment, operation), stats in sorted(self._cells.items())
            ],
            "open": [offered - ended for offered, ended in zip(self._offered, self.ended)],
            "servers": self._server_rows(),
            "errors": self._error_rows(),
            "orphans": self._ledger.take_orphans(),
            "generator": generator,
        }
        dead_letters = self._ledger.dead_letters.take()
        if dead_letters:
            snapshot["dead_letters"] = dead_letters
        self._sequence += 1
        self.start_ns = end_ns
        self._begin_interval()
        return snapshot

    def _server_rows(self) -> list[dict[str, Any]]:
        rows = []
        for number, (address, now) in enumerate(self._ledger.servers.totals()):
            if number == len(self._pools):
                self._pools.append(Counter())
            seen, before, self._pools[number] = self._server(number), self._pools[number], now
            closed = sum(count for name, count in now.items() if name.startswith("closed_"))
            pool = {name: now[name] - before[name] for name in POOL_COUNTS}
            open_now = max(0, now["created"] - closed)
            rows.append({"address": address, **to_json(seen), "pool": pool, "connections_open": open_now})
        return rows

    def _error_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "segment": segment, "operation": operation, "level": level,
                "class": {**group._asdict(), "labels": list(group.labels)},
                "count": seen.count, "first_ns": seen.first_ns, "last_ns": seen.last_ns, "example": self._examples[group],
            }
            for (segment, operation, level, group), seen in self._errors.items()
        ]  # fmt: skip

"""Workers: threads that carry one operation at a time."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from typing import Any, Callable, NamedTuple, Optional

import failures
from application import Deadline, Pauses, Policy
from attempts import Trace, trace_this_thread
from failures import Failure, FailureClass
from items import Hopeless, Items
from ledger import Ledger
from operations import Statement, Target, Workload
from records import ENDED_FAILED, GAVE_UP, OK, TIMED_OUT, Abandoned, Cell, Ended, Started
from schedule import Segments
from template import Draw


class _Call(NamedTuple):
    """What came of one call."""

    outcome: int
    failure: Optional[Failure] = None
    # Whether another call may go better.
    again: bool = False
    # Whether nobody knows what of it the servers did; a rejection is the word of one that has done nothing.
    unclear: bool = False
    # Items that no server takes.
    hopeless: tuple[Hopeless, ...] = ()


class Crew:
    """The threads that carry operations, and what they share."""

    def __init__(
        self, plan: dict[str, Any], workload: Workload, segments: Segments, target: Target, ledger: Ledger,
        died: Callable[[BaseException], None], deadline: Deadline, policy: Optional[Policy],
    ) -> None:  # fmt: skip
        self._workload, self._segments, self._target, self._ledger, self._died = workload, segments, target, ledger, died
        self._seed = plan["seed"]
        self._deadline, self._policy = deadline, policy
        self._threads: list[threading.Thread] = []
        # Waiting for an operation: one element each, because appending and taking need no lock.
        self._idle: list[None] = []
        # The open model: operations that are due; None ends a worker.
        self.queue: queue.SimpleQueue[Optional[tuple[int, int]]] = queue.SimpleQueue()
        # The closed model: nothing more is to be begun.
        self.stopping = False
        self._next = itertools.count()

    def __len__(self) -> int:
        return len(self._threads)

    @property
    def idle(self) -> int:
        return len(self._idle)

    def add_server(self) -> None:
        """A worker of the open model."""
        self._add(self._serve)

    def add_repeater(self) -> None:
        """A worker of the closed model."""
        self._add(self._repeat)

    def number_from(self, first: int) -> None:
        self._next = itertools.count(first)

    def next_number(self) -> int:
        """The closed model: a number that no operation has."""
        return next(self._next)

    def join(self, seconds: float) -> bool:
        """Waits until every worker has ended; whether they all did."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def dismiss(self) -> None:
        """Takes all work away: what is under way has no outcome of its own any more."""
        for trace in self._ledger.traces:
            trace.dismissed = True
        # No thread can be stopped from outside. Whoever takes the outcome tells it.
        for trace in self._ledger.traces:
            cell = trace.cell
            if cell is not None and trace.take_outcome():
                trace.end(ok=False)
                self._ledger.records.append(Abandoned(self._now(), cell))

    def _add(self, work: Callable[[Trace], None]) -> None:
        trace = Trace(self._ledger)
        self._ledger.traces.append(trace)
        thread = threading.Thread(target=self._carry, args=(work, trace), name="worker", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _carry(self, work: Callable[[Trace], None], trace: Trace) -> None:
        trace_this_thread(trace)
        try:
            work(trace)
        except BaseException as error:  # Whatever it is, this trial's numbers are not whole.
            self._died(error)

    def _serve(self, trace: Trace) -> None:
        while not trace.dismissed:
            self._idle.append(None)
            due = self.queue.get()
            self._idle.pop()
            if due is None:
                return
            self._perform(trace, *due)

    def _repeat(self, trace: Trace) -> None:
        while not self.stopping:
            n = self.next_number()
            self._perform(trace, n, self._now())

    def _now(self) -> int:
        return time.monotonic_ns() - self._ledger.go_ns

    def _perform(self, trace: Trace, n: int, due_ns: int) -> None:
        start_ns = self._now()
        wait_ns = max(0, start_ns - due_ns)
        statement, operation, draw = self._workload.instance(n)
        cell = Cell(self._segments.at(due_ns), operation)
        self._ledger.records.append(Started(start_ns, cell, wait_ns))
        trace.begin(cell, has_cursor=statement.kind in ("find", "aggregate"))
        pauses = Pauses.of_operation(self._policy, self._seed, n) if self._policy else None
        calls, items, unclear = 1, Items(), False
        dead: Optional[Failure] = None
        while True:
            call = self._call(statement, draw, items)
            if call.hopeless:
                dead = dead or call.failure
                self._give_up(call.hopeless, n, calls, unclear)
            unclear = unclear or call.unclear
            pause = pauses.next() if pauses is not None and call.again else None
            if pause is None or trace.dismissed:
                break
            trace.next_call(given_up=call.outcome == TIMED_OUT)
            if pause:
                pauses.paused_ns += pause  # type: ignore[union-attr]
                time.sleep(pause / 1e9)
            # The same operation again: the same keys, the same documents.
            statement, _, draw = self._workload.instance(n)
            calls += 1
        end_ns = self._now()
        if not trace.take_outcome():
            return
        trace.end(call.outcome == OK)
        if call.outcome == OK and dead:
            # The rest of it is written, but it is not.
            call = _Call(ENDED_FAILED, dead)
        backoff_ns = trace.backoff_ns + (pauses.paused_ns if pauses else 0)
        self._ledger.records.append(
            Ended(
                end_ns, cell, call.outcome, calls, trace.retries, wait_ns, trace.checkout_ns, trace.attempt_ns,
                backoff_ns, end_ns - start_ns, call.failure,
            )  # fmt: skip
        )

    def _give_up(self, hopeless: tuple[Hopeless, ...], n: int, calls: int, unclear_before: bool) -> None:
        """Keeps items for people that no server takes."""
        statement, operation, draw = self._workload.instance(n)
        # What was sent was rendered from the same, and the driver may have added to it.
        documents = statement.render(draw)["documents"]
        for item, error in hopeless:
            letter = {
                "at_ns": self._now(), "operation": operation, "n": n, "item": item, "calls": calls,
                "code": error.get("code") if error else None, "code_name": failures.name_of(error or {}),
                "message": str(error.get("errmsg", "")) if error else "", "unclear_before": unclear_before,
            }  # fmt: skip
            self._ledger.dead_letters.put(letter, {"insertOne": {"document": documents[item]}})

    def _call(self, statement: Statement, draw: Draw, items: Items) -> _Call:
        """One call of the driver, as long as the application waits for it."""
        began_ns = time.monotonic_ns()
        try:
            with self._deadline.bound():
                rendered = statement.render(draw)
                if statement.bulk:
                    rendered["documents"] = items.pick(rendered["documents"])
                statement.execute(self._target, rendered)
        except Exception as error:
            return self._failed_call(error, time.monotonic_ns() - began_ns, statement, items)
        return _Call(OK)

    def _failed_call(self, error: Exception, took_ns: int, statement: Statement, items: Items) -> _Call:
        failure = failures.classify(error)
        # Before the application's deadline a timeout is the driver's or the server's, and a failure.
        if self._deadline.has_passed(took_ns) and failures.is_timeout(error):
            return _Call(TIMED_OUT, Failure(FailureClass("timeout"), failure.example), again=True, unclear=True)
        outcome = GAVE_UP if failures.is_retryable_overload(error) else ENDED_FAILED
        if self._policy is None:
            return _Call(outcome, failure)
        hopeless = items.settle(statement.bulk, error) if statement.bulk else None
        if hopeless is not None:
            return _Call(outcome, failure, items.any(), hopeless=tuple(hopeless))
        return _Call(outcome, failure, failures.is_worth_another_call(error), not failures.is_overload(error))

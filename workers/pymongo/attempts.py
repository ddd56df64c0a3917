"""Telling attempts apart: PyMongo calls its listeners in the thread that runs the operation, so a thread-local trace
attributes every event to the operation under way.

Pool events say when an attempt begins and where; command events say what it was and how it ended. An attempt is a retry
when the one before it, within the same call, failed and was of the same command.
"""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple, Optional

from pymongo import monitoring

import failures
from failures import Failure, FailureClass
from ledger import Ledger
from records import FAILED, NO_ANSWER, NO_CONNECTION, NOWHERE, REJECTED, SERVED, UNKNOWN, Attempt, Cell

class _Open:
    """The attempt under way."""

    __slots__ = ("checkout", "checkout_ns", "backoff_ns", "server", "sent", "command", "retargeted")

    def __init__(self, checkout: Optional[int], backoff_ns: Optional[int], server: int = NOWHERE) -> None:
        self.checkout = checkout
        self.checkout_ns: Optional[int] = None
        self.backoff_ns = backoff_ns
        self.server = server
        # When the command was sent or, by pool events alone, the connection had.
        self.sent: Optional[int] = None
        self.command: Optional[str] = None
        self.retargeted = False


class _Failed(NamedTuple):
    """The attempt before, when it failed and nothing has been said since that ends its command."""

    at_ns: int
    server: int
    rejected: bool
    # None when it died before it was a command.
    command: Optional[str]


class Trace:
    """The attempts of the operation that a worker has under way. One a worker, and only its thread writes to it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.checkouts = 0
        self.cell: Optional[Cell] = None
        # Whether the driver may end cursors of its own accord on behalf of the operation.
        self.has_cursor = False
        # Set when the load is over and nobody waits for the worker any more.
        self.dismissed = False
        # One element until somebody tells how the operation ended: taking it needs no lock.
        self._outcome: list[None] = []
        self._reset()

    def _reset(self) -> None:
        self.retries = self.checkout_ns = self.attempt_ns = self.backoff_ns = 0
        self.open: Optional[_Open] = None
        self.failed: Optional[_Failed] = None
        self.retry = 0
        self.repeats = False

    def begin(self, cell: Cell, has_cursor: bool) -> None:
        self._reset()
        self._outcome = [None]
        self.cell, self.has_cursor = cell, has_cursor

    def take_outcome(self) -> bool:
        """Whether it falls to the caller to tell how the operation ended; it falls to one alone."""
        try:
            self._outcome.pop()
        except IndexError:
            return False
        return True

    def next_call(self, given_up: bool) -> None:
        """The call has failed, and another begins: its commands are new ones."""
        self.settle(NO_ANSWER if given_up else UNKNOWN)
        self.failed = None
        self.repeats = True

    def end(self, ok: bool) -> None:
        """The operation has ended; the sums stay until the next one begins."""
        self.settle(SERVED if ok else UNKNOWN)
        self.cell = None

    def checkout_started(self) -> None:
        now = time.monotonic_ns()
        # By pool events alone, the next check-out is the first that is heard of the last attempt's end.
        self.settle(UNKNOWN)
        known = self.failed is not None and self.ledger.commands
        self.open = _Open(now, now - self.failed.at_ns if known else None)  # type: ignore[union-attr]

    def checked_out(self, server: int) -> None:
        self.checkouts += 1
        if self.open is not None:
            now = time.monotonic_ns()
            self.open.checkout_ns = now - self.open.checkout  # type: ignore[operator]
            self.open.server = server
            self.open.retargeted = self._is_retargeted_to(server)
            if not self.ledger.commands:
                self.open.sent = now

    def checkout_failed(self, server: int, kind: str) -> None:
        self.checkouts += 1
        if self.open is not None:
            self.open.server = server
            self.open.retargeted = self._is_retargeted_to(server)
        self.close(NO_CONNECTION, Failure(FailureClass(kind), "no connection was had"))

    def command_started(self, name: str, address: Any) -> None:
        if self.open is None:
            # Another command on the same connection: the attempt began without a check-out, so it is counted here.
            self.checkouts += 1
            server = self.ledger.servers.number(address)
            self.open = _Open(None, None, server)
            self.open.retargeted = self._is_retargeted_to(server)
        elif self.open.checkout_ns is None and self.open.checkout is not None:
            # The new connection logs in.
            return
        if name == "killCursors" and self.has_cursor:
            # The driver's own: no part of the operation, as in drivers that send it from elsewhere.
            self.checkouts -= 1
            self.open = None
            self.ledger.orphan(name)
            return
        self.open.sent = time.monotonic_ns()
        self.open.command = name

    def command_ended(self, end: int, failure: Optional[Failure]) -> None:
        if self.open is not None and self.open.command is not None:
            self.close(end, failure)

    def settle(self, by_pool_events: int) -> None:
        """Closes an attempt of which no event told the end."""
        if self.open is None:
            return
        if self.open.sent is not None:
            self.close(NO_ANSWER if self.ledger.commands else by_pool_events, None)
            return
        if self.open.checkout_ns is not None:
            # The driver thought better of it, after it had a connection: no server was asked anything.
            self.checkouts -= 1
        # Without a connection it was no attempt yet, and never will be.
        self.open = None

    def close(self, end: int, failure: Optional[Failure]) -> None:
        opened, self.open = self.open, None
        if opened is None or self.cell is None:
            return
        now = time.monotonic_ns()
        before = self.failed
        repeats = before is not None and (
            before.command is None or opened.command is None or before.command == opened.command
        )
        self.retry = self.retry + 1 if repeats else 0
        self.retries += repeats
        backoff_ns = opened.backoff_ns if repeats else None
        answered = opened.sent is not None and end in (SERVED, REJECTED, FAILED)
        round_trip_ns = now - opened.sent if answered else None  # type: ignore[operator]
        waited = opened.checkout_ns
        if waited is None and opened.checkout is not None:
            # A check-out that failed was waited for, too.
            waited = now - opened.checkout
        self.checkout_ns += waited or 0
        self.attempt_ns += round_trip_ns or 0
        self.backoff_ns += backoff_ns or 0
        # By pool events alone, a check-out in the same call is taken for a repetition.
        if end == SERVED:
            self.failed = None
        else:
            command = opened.command or (before.command if before else None)
            self.failed = _Failed(now, opened.server, end == REJECTED, command)
        self.ledger.records.append(
            Attempt(
                now - self.ledger.go_ns, self.cell, opened.server, self.retry, not self.repeats, end,
                opened.retargeted, backoff_ns, opened.checkout_ns, round_trip_ns, failure,
            )  # fmt: skip
        )

    def _is_retargeted_to(self, server: int) -> bool:
        return self.failed is not None and self.failed.rejected and self.failed.server != server


_LOCAL = threading.local()


def trace_this_thread(trace: Trace) -> None:
    """From now on what the driver does in this thread belongs to the trace."""
    _LOCAL.trace = trace


def _current() -> Optional[Trace]:
    trace = getattr(_LOCAL, "trace", None)
    return trace if trace is not None and trace.cell is not None and not trace.dismissed else None


class PoolListener(monitoring.ConnectionPoolListener):
    """What the client's pool events mean."""

    def __init__(self, ledger: Ledger) -> None:
        self._servers = ledger.servers

    def connection_check_out_started(self, event: Any) -> None:
        trace = _current()
        if trace is not None:
            trace.checkout_started()

    def connection_checked_out(self, event: Any) -> None:
        trace = _current()
        if trace is not None:
            trace.checked_out(self._servers.number(event.address))

    def connection_check_out_failed(self, event: Any) -> None:
        trace = _current()
        if trace is not None:
            kind = "checkout_timeout" if event.reason == "timeout" else "connect"
            trace.checkout_failed(self._servers.number(event.address), kind)

    def connection_created(self, event: Any) -> None:
        self._servers.count(event.address, "created")

    def connection_closed(self, event: Any) -> None:
        self._servers.count_closed(event.address, event.reason)

    def pool_cleared(self, event: Any) -> None:
        self._servers.count(event.address, "clears")

    def _nothing(self, event: Any) -> None:
        """Counted elsewhere, or of no interest."""

    pool_created = pool_ready = pool_closed = connection_ready = connection_checked_in = _nothing


class CommandListener(monitoring.CommandListener):
    """What the client's command events mean."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def started(self, event: Any) -> None:
        trace = _current()
        if trace is None:
            self._ledger.orphan(event.command_name)
        else:
            trace.command_started(event.command_name, event.connection_id)

    def succeeded(self, event: Any) -> None:
        trace = _current()
        if trace is not None:
            # A reply with ok: 1 counts as a success before anyone looks for an error of the write concern.
            failure = failures.classify_reply(event.reply)
            trace.command_ended(SERVED if failure is None else _end_of(failure), failure)

    def failed(self, event: Any) -> None:
        trace = _current()
        if trace is not None:
            failure = failures.classify_event(event.failure)
            trace.command_ended(NO_ANSWER if failures.is_unanswered(event.failure) else _end_of(failure), failure)


def _end_of(failure: Failure) -> int:
    return REJECTED if failures.OVERLOADED in failure.group.labels else FAILED


def listeners(ledger: Ledger) -> list[Any]:
    """What a client needs so that its attempts are recorded in the ledger."""
    pool: list[Any] = [PoolListener(ledger)]
    return pool + [CommandListener(ledger)] if ledger.commands else pool

"""The facts that workers record: small, plain values. What they mean is worked out off the operation's path.

Offsets are nanoseconds since Go, in all records.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

from failures import Failure

# How an attempt ended.
SERVED, REJECTED, FAILED, NO_CONNECTION, NO_ANSWER, UNKNOWN = range(6)

# An address's number where no server was reached.
NOWHERE = -1

# How an operation ended.
OK, ENDED_FAILED, GAVE_UP, TIMED_OUT = range(4)


class Cell(NamedTuple):
    """Which operation, and the segment of its intended start."""

    segment: int
    operation: int


class Attempt(NamedTuple):
    """One try of a command on a server."""

    at_ns: int
    cell: Cell
    server: int
    retry: int
    first_call: bool
    end: int
    retargeted: bool
    backoff_ns: Optional[int]
    checkout_ns: Optional[int]
    round_trip_ns: Optional[int]
    failure: Optional[Failure]


class Started(NamedTuple):
    """An operation was given to the driver."""

    at_ns: int
    cell: Cell
    lag_ns: int


class Ended(NamedTuple):
    """An operation has ended. Times are sums over its attempts."""

    at_ns: int
    cell: Cell
    outcome: int
    calls: int
    retries: int
    wait_ns: int
    checkout_ns: int
    attempt_ns: int
    backoff_ns: int
    service_ns: int
    failure: Optional[Failure]


class Abandoned(NamedTuple):
    """An operation was still under way when nobody waited for it any more: it belongs to the last interval."""

    at_ns: int
    cell: Cell

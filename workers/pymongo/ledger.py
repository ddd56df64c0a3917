"""What all workers of one client leave behind: records, the servers that were met, and commands of nobody."""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from items import LetterBox

if TYPE_CHECKING:
    from attempts import Trace

# Older versions publish what logs a connection in, which is no work of any operation.
_LOGGING_IN = ("saslStart", "saslContinue", "authenticate", "getnonce", "logout")


class Servers:
    """The servers that a client has met, numbered in that order, and what its pools did there."""

    _CLOSED = {"stale": "closed_stale", "idle": "closed_idle", "poolClosed": "closed_pool_closed"}

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._pools: list[tuple[str, Counter]] = []
        self._lock = threading.Lock()

    def number(self, address: Any) -> int:
        number = self._numbers.get(address)
        if number is None:
            with self._lock:
                number = self._numbers.setdefault(address, len(self._pools))
                if number == len(self._pools):
                    self._pools.append((_host_and_port(address), Counter()))
        return number

    def count(self, address: Any, what: str) -> None:
        number = self.number(address)
        with self._lock:
            self._pools[number][1][what] += 1

    def count_closed(self, address: Any, reason: str) -> None:
        self.count(address, self._CLOSED.get(reason, "closed_error"))

    def totals(self) -> list[tuple[str, Counter]]:
        """Address and counts since the client was made, in order of number."""
        with self._lock:
            return [(address, Counter(counts)) for address, counts in self._pools]


def _host_and_port(address: Any) -> str:
    host, port = address
    if port is None:
        return str(host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Ledger:
    """What all traces of one client share."""

    def __init__(self, commands: bool) -> None:
        # Everything that workers record, in order. Appending and taking from the left need no lock.
        self.records: deque[Any] = deque()
        self.servers = Servers()
        self.dead_letters = LetterBox()
        # Whether command events come at all.
        self.commands = commands
        self.go_ns = 0
        # Set while the load runs: what the client does before and after is nobody's.
        self.armed = False
        self.traces: list[Trace] = []
        self._orphans: Counter = Counter()
        self._lock = threading.Lock()

    def orphan(self, command: str) -> None:
        if self.armed and command not in _LOGGING_IN:
            with self._lock:
                self._orphans[command] += 1

    def take_orphans(self) -> dict[str, int]:
        with self._lock:
            taken, self._orphans = self._orphans, Counter()
        return dict(taken)

    def checkouts(self) -> int:
        """Attempts by their check-outs so far, counted apart from the records."""
        return sum(trace.checkouts for trace in self.traces)

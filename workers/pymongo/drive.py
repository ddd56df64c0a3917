"""The load from Go to its end: phases, the pacer, the recorder's clock."""

from __future__ import annotations

import os
import queue
import threading
import time
from typing import Any, Callable, Optional

from operations import Target
from protocol import Redactor, Reports, Requests, say
from recorder import Recorder
from trial import MOST_THREADS, Trial
from workers import Crew

_FIRST_WORKERS = 16
# Due operations that wait for a worker; the rest waits in the schedule.
_QUEUE = 1024

# The pacer's sleeps, in seconds: what becomes due in the shortest goes out together.
_SHORTEST, _LONGEST = 0.00025, 0.1
# How often records are gathered.
_GATHER = 0.05
# How long operations under way may take to end once nothing more is begun.
_DRAIN = 5.0
# No shutdown of the client is waited for longer.
_SHUTDOWN = 1.0


class Generator:
    """The load generator's own use of the machine."""

    def __init__(self) -> None:
        self._cpu_ns = time.process_time_ns()

    def read(self, behind_ns: int, workers: int, in_flight: int) -> dict[str, int]:
        before, self._cpu_ns = self._cpu_ns, time.process_time_ns()
        used = self._cpu_ns - before
        return {
            "cpu_ns": used, "rss_bytes": _rss_bytes(), "behind_ns": behind_ns, "workers": workers, "in_flight": in_flight,
        }  # fmt: skip


def _rss_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Drive:
    """The load from Go to its end."""

    def __init__(self, trial: Trial, client: Any, first: int, requests: Requests, reports: Reports, redact: Redactor) -> None:
        self._trial, self._requests, self._reports, self._first = trial, requests, reports, first
        plan, ledger = trial.plan, trial.ledger
        database = client[plan["data"]["database"]]
        target = Target(client, database, database[plan["data"]["collection"]])
        self._crew = Crew(
            plan, trial.workload, trial.segments, target, ledger, requests.died, trial.deadline, trial.policy
        )  # fmt: skip
        # Pool events alone tell the end of a call, and so of an attempt only where a call is one command.
        told_apart = [ledger.commands or statement.is_single_command for statement in trial.workload.statements]
        due = trial.due_times() if trial.model == "open" else None
        self._recorder = Recorder(ledger, trial.workload.mix, trial.segments, told_apart, first, due, redact)
        self._generator = Generator()
        self._closed = threading.Event()
        self._frozen_at: Optional[int] = None
        # As of the last gathering: up to when all is known, and whether measured operations have no outcome yet.
        self._known: tuple[int, int] = (0, 0)
        self._recording_ends = threading.Event()
        self._next = first

    def run(self) -> dict[str, Any]:
        """Drives the load to its end; returns the totals."""
        ledger = self._trial.ledger
        ledger.go_ns = time.monotonic_ns()
        ledger.armed = True
        pacer = self._start()
        recording = self._thread(self._record)
        stopped = self._wait_until(self._trial.segments.measured_until_ns) or self._cool_down()
        taken_back, handed_out = self._close(pacer)
        self._reports.send("closed", {"next": handed_out})
        if not self._crew.join(_DRAIN):
            # What the driver does about operations that are taken away is not the load's doing.
            ledger.armed = False
            self._crew.dismiss()
        self._recording_ends.set()
        recording.join()
        self._finish(taken_back, handed_out)
        cut = stopped or self._recorder.cut_off > 0
        return {"ended": self._recorder.ended, "attempts": ledger.checkouts(), "cut": cut}

    def _now(self) -> int:
        return time.monotonic_ns() - self._trial.ledger.go_ns

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        def carry() -> None:
            try:
                work()
            except BaseException as error:  # Whatever it is, the trial has no numbers without it.
                self._requests.died(error)

        thread = threading.Thread(target=carry, name=work.__name__, daemon=True)
        thread.start()
        return thread

    def _start(self) -> Optional[threading.Thread]:
        shape, crew = self._trial.shape, self._crew
        if self._trial.model == "closed":
            crew.number_from(self._first)
            for _ in range(shape["workers"]):
                crew.add_repeater()
            return None
        if shape["max_in_flight"] > MOST_THREADS:
            say(f"{shape['max_in_flight']} operations may be under way; the PyMongo worker has threads for {MOST_THREADS}")
        for _ in range(min(_FIRST_WORKERS, shape["max_in_flight"])):
            crew.add_server()
        return self._thread(self._pace)

    def _pace(self) -> None:
        """Hands out due operations on time. A full queue leaves arrivals in the schedule: intended starts stay true."""
        times, crew, most = self._trial.due_times(), self._crew, min(self._trial.shape["max_in_flight"], MOST_THREADS)
        due_ns = next(times)
        while not self._closed.is_set():
            now = self._now()
            while due_ns <= now and crew.queue.qsize() < _QUEUE:
                crew.queue.put((self._next, due_ns))
                self._next += 1
                due_ns = next(times)
            for _ in range(min(crew.queue.qsize() - crew.idle, most - len(crew))):
                crew.add_server()
            self._closed.wait(min(max((due_ns - self._now()) / 1e9, _SHORTEST), _LONGEST))

    def _wait_until(self, offset_ns: int) -> bool:
        """Waits; true when a stop was asked for before."""
        while True:
            left = (offset_ns - self._now()) / 1e9
            if left <= 0:
                return False
            request = self._requests.next(left)
            if request is not None and request[0] == "stop":
                return True

    def _cool_down(self) -> bool:
        """Keeps the load on until every measured operation is resolved: the last retries meet what the first ones met."""
        measured_until_ns = self._trial.segments.measured_until_ns
        end = measured_until_ns + self._trial.cooldown_ns
        while self._now() < end:
            known_until, measured_open = self._known
            if known_until > measured_until_ns and measured_open == 0:
                break
            if self._wait_until(self._now() + 50_000_000):
                return True
        return False

    def _close(self, pacer: Optional[threading.Thread]) -> tuple[list[tuple[int, int]], int]:
        """Nothing more is begun. Returns what was handed out and not taken, and the number of the next operation."""
        crew = self._crew
        self._closed.set()
        crew.stopping = True
        if pacer is not None:
            # Whatever it has handed out was due before the end, then.
            pacer.join()
        self._frozen_at = self._now()
        if pacer is None:
            # A worker that has not seen the end yet takes one more.
            return [], crew.next_number() + len(crew)
        taken_back: list[Any] = []
        try:
            while True:
                taken_back.append(crew.queue.get_nowait())
        except queue.Empty:
            pass
        for _ in range(len(crew)):
            crew.queue.put(None)
        return taken_back, self._next

    def _record(self) -> None:
        """Gathers records and cuts snapshots at whole seconds, at segments' borders, and where the load ends."""
        recorder, segments = self._recorder, self._trial.segments
        next_cut = segments.boundary_after(0)
        while not self._recording_ends.is_set():
            self._recording_ends.wait(min(max(0, next_cut - self._now()) / 1e9, _GATHER))
            frozen_at = self._frozen_at
            if frozen_at is not None and recorder.start_ns < frozen_at:
                # What ends after the load is no part of an interval with load.
                next_cut = min(next_cut, frozen_at)
            known_until = recorder.absorb(self._now, lambda: self._frozen_at, next_cut)
            self._known = (known_until, recorder.measured_open)
            if known_until < next_cut:
                continue
            behind_ns = recorder.behind_ns(next_cut) if frozen_at is None or frozen_at >= next_cut else 0
            self._snapshot(next_cut, behind_ns)
            next_cut = segments.boundary_after(next_cut)

    def _snapshot(self, end_ns: int, behind_ns: int) -> None:
        generator = self._generator.read(behind_ns, len(self._crew), self._recorder.in_flight)
        self._reports.send("snapshot", self._recorder.snapshot(end_ns, generator))

    def _finish(self, taken_back: list[tuple[int, int]], handed_out: int) -> None:
        """The last snapshots: what was in flight when the load ended has come to an end by now."""
        recorder, frozen_at = self._recorder, self._frozen_at
        assert frozen_at is not None
        if recorder.start_ns < frozen_at:
            recorder.absorb(self._now, lambda: frozen_at, frozen_at)
            self._snapshot(frozen_at, 0)
        end_ns = recorder.absorb(self._now, lambda: frozen_at, None)
        recorder.cut(taken_back, handed_out)
        self._snapshot(end_ns, 0)


def run(trial: Trial, requests: Requests, reports: Reports, redact: Redactor) -> None:
    """Runs one trial. Everything it has to say goes through `reports`, ending with `done`."""
    client = trial.connect(redact)
    reports.send("ready", {})
    request = requests.next()
    if request is None or request[0] != "go":
        raise ValueError("stopped before the load began")
    totals = Drive(trial, client, request[1].get("first", 0), requests, reports, redact).run()
    trial.ledger.armed = False
    closing = threading.Thread(target=client.close, daemon=True)
    closing.start()
    closing.join(_SHUTDOWN)
    requests.exit_code = 0
    reports.send("done", totals)

"""Events become attempts, and records become snapshots, without any deployment."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from pymongo import errors  # noqa: E402

import failures  # noqa: E402
from attempts import CommandListener, PoolListener, Trace, trace_this_thread  # noqa: E402
from failures import Failure, FailureClass  # noqa: E402
from ledger import Ledger  # noqa: E402
from mix import Mix, Share  # noqa: E402
from protocol import Redactor  # noqa: E402
from records import (  # noqa: E402
    FAILED, GAVE_UP, NO_ANSWER, NO_CONNECTION, OK, REJECTED, SERVED, UNKNOWN, Abandoned, Cell, Ended, Started,
)  # fmt: skip
from recorder import Recorder  # noqa: E402
from schedule import Segments  # noqa: E402

A, B = ("a", 27017), ("b", 27017)
OVERLOAD = {"ok": 0, "code": 462, "codeName": "Limited", "errorLabels": ["SystemOverloadedError", "RetryableError"], "errmsg": "no"}


class Attempts(unittest.TestCase):
    def begin(self, commands: bool = True, has_cursor: bool = False) -> None:
        self.ledger = Ledger(commands)
        self.ledger.armed = True
        self.trace = Trace(self.ledger)
        self.ledger.traces.append(self.trace)
        self.pool, self.commands = PoolListener(self.ledger), CommandListener(self.ledger)
        trace_this_thread(self.trace)
        self.trace.begin(Cell(1, 0), has_cursor)

    def checkout(self, address: Any = A) -> None:
        self.pool.connection_check_out_started(SimpleNamespace(address=address))
        self.pool.connection_checked_out(SimpleNamespace(address=address))

    def command(self, name: str, failure: Optional[dict[str, Any]] = None, reply: Optional[dict[str, Any]] = None) -> None:
        event = SimpleNamespace(command_name=name, connection_id=A, reply=reply or {"ok": 1}, failure=failure)
        self.commands.started(event)
        (self.commands.succeeded if failure is None else self.commands.failed)(event)

    def seen(self, ok: bool = True) -> list[tuple[int, int, bool]]:
        """How each attempt ended, which retry it was, and whether on another server."""
        self.trace.end(ok)
        records = list(self.ledger.records)
        self.assertEqual(len(records), self.ledger.checkouts(), "counted on their own")
        return [(record.end, record.retry, record.retargeted) for record in records]

    def test_a_rejected_attempt_is_retried_elsewhere(self) -> None:
        self.begin()
        self.checkout(A)
        self.command("find", OVERLOAD)
        self.checkout(B)
        self.command("find")
        self.assertEqual(self.seen(), [(REJECTED, 0, False), (SERVED, 1, True)])
        self.assertEqual(self.trace.retries, 1)
        self.assertIsNone(self.ledger.records[0].backoff_ns)
        self.assertGreaterEqual(self.ledger.records[1].backoff_ns, 0)

    def test_each_batch_of_a_cursor_is_a_command(self) -> None:
        self.begin(has_cursor=True)
        for name in ("find", "getMore", "getMore"):
            self.checkout()
            self.command(name)
        self.assertEqual(self.seen(), [(SERVED, 0, False)] * 3)

    def test_several_commands_on_one_connection_are_several_attempts(self) -> None:
        self.begin()
        self.checkout()
        self.command("insert")
        self.command("insert", {**OVERLOAD, "errorLabels": []})
        self.assertEqual(self.seen(ok=False), [(SERVED, 0, False), (FAILED, 0, False)])

    def test_killing_its_cursor_is_no_part_of_an_operation(self) -> None:
        self.begin(has_cursor=True)
        for name in ("find", "killCursors"):
            self.checkout()
            self.command(name)
        self.assertEqual(self.seen(), [(SERVED, 0, False)])
        self.assertEqual(self.ledger.take_orphans(), {"killCursors": 1})
        # Unless it is the operation.
        self.begin()
        self.checkout()
        self.command("killCursors")
        self.assertEqual(self.seen(), [(SERVED, 0, False)])

    def test_a_new_connection_that_logs_in_is_no_attempt(self) -> None:
        self.begin()
        self.pool.connection_check_out_started(SimpleNamespace(address=A))
        self.command("saslStart")
        self.command("saslContinue", OVERLOAD)
        self.pool.connection_checked_out(SimpleNamespace(address=A))
        self.command("find")
        self.assertEqual(self.seen(), [(SERVED, 0, False)])

    def test_no_connection_is_an_attempt_and_no_command_is_none(self) -> None:
        self.begin()
        self.pool.connection_check_out_started(SimpleNamespace(address=A))
        self.pool.connection_check_out_failed(SimpleNamespace(address=A, reason="timeout"))
        # A connection was had, and the driver thought better of it.
        self.checkout()
        self.assertEqual(self.seen(ok=False), [(NO_CONNECTION, 0, False)])
        self.assertEqual(self.ledger.records[0].failure.group.kind, "checkout_timeout")

    def test_an_answer_that_did_not_come_has_no_round_trip(self) -> None:
        self.begin()
        self.checkout()
        self.command("find", {"errmsg": "timed out", "errtype": "NetworkTimeout"})
        self.assertEqual(self.seen(ok=False), [(NO_ANSWER, 0, False)])
        self.assertIsNone(self.ledger.records[0].round_trip_ns)

    def test_a_call_of_the_applications_begins_anew(self) -> None:
        self.begin()
        self.checkout()
        self.command("find", {**OVERLOAD, "errorLabels": []})
        self.trace.next_call(given_up=False)
        self.checkout()
        self.command("find")
        self.assertEqual(self.seen(), [(FAILED, 0, False), (SERVED, 0, False)])
        self.assertEqual([record.first_call for record in self.ledger.records], [True, False])

    def test_pool_events_alone_tell_attempts(self) -> None:
        self.begin(commands=False)
        self.checkout()
        self.checkout(B)
        self.assertEqual(self.seen(), [(UNKNOWN, 0, False), (SERVED, 1, False)])

    def test_errors_of_the_write_concern_hide_in_successes(self) -> None:
        self.begin()
        self.checkout()
        concern = {"writeConcernError": {"code": 91, "codeName": "ShutdownInProgress", "errmsg": "x"}, "ok": 1}
        self.command("insert", reply=concern)
        self.assertEqual(self.seen(ok=False), [(FAILED, 0, False)])
        self.assertEqual(self.ledger.records[0].failure.group, FailureClass("write_concern", 91, "ShutdownInProgress"))

    def test_what_happens_outside_operations_is_an_orphan(self) -> None:
        self.begin()
        self.trace.end(True)
        for name in ("killCursors", "saslStart"):
            self.checkout()
            self.command(name)
        self.assertEqual((self.seen(), self.ledger.take_orphans()), ([], {"killCursors": 1}))


class Errors(unittest.TestCase):
    def test_are_told_apart_by_kind_code_and_labels(self) -> None:
        overload = errors.OperationFailure("no", 462, OVERLOAD)
        labels = ("RetryableError", "SystemOverloadedError")
        many = errors.BulkWriteError({"writeErrors": [{"code": 11000, "errmsg": "dup"}]})
        for error, group in (
            (overload, FailureClass("command", 462, "Limited", labels)),
            (errors.NotPrimaryError("x", {"code": 10107, "codeName": "NotWritablePrimary", "ok": 0}), FailureClass("command", 10107, "NotWritablePrimary")),
            (errors.DuplicateKeyError("x", 11000, {"code": 11000, "errmsg": "dup"}), FailureClass("write", 11000, "DuplicateKey")),
            (many, FailureClass("insert_many", 11000, "DuplicateKey")),
            (errors.WTimeoutError("x", 64, {"code": 64, "codeName": "WriteConcernFailed"}), FailureClass("write_concern", 64, "WriteConcernFailed")),
            (errors.AutoReconnect("x"), FailureClass("io")),
            (errors.AutoReconnect("a:1: connection pool paused"), FailureClass("pool_cleared")),
            (errors.ServerSelectionTimeoutError("x"), FailureClass("server_selection")),
            (errors.OperationFailure("x", 18), FailureClass("authentication", 18)),
            (failures.TemplateError("x"), FailureClass("template")),
            (RuntimeError("x"), FailureClass("panic")),
        ):  # fmt: skip
            self.assertEqual(failures.classify(error).group, group)
        self.assertTrue(failures.is_retryable_overload(overload) and failures.is_worth_another_call(overload))
        self.assertFalse(failures.is_worth_another_call(errors.OperationFailure("x", 9)))
        self.assertTrue(failures.is_worth_another_call(errors.OperationFailure("x", 50)))

    def test_secrets_are_hidden_as_written_and_decoded(self) -> None:
        redact = Redactor("mongodb://us%65r:p%40ss%2Fw@h:1,k:2/db?authMechanismProperties=AWS_SESSION_TOKEN:t0ken&appName=x")
        self.assertEqual(redact("p%40ss%2Fw p@ss/w t0ken us%65r:p%40ss%2Fw h:1"), "*** *** *** *** h:1")
        self.assertEqual(Redactor("mongodb://h/?x=1")("nothing"), "nothing")


class Recording(unittest.TestCase):
    SECOND = 1_000_000_000
    PARTS = [
        {"name": "warmup", "start_ns": 0, "end_ns": 0},
        {"name": "measure", "start_ns": 0, "end_ns": 2 * SECOND},
        {"name": "cooldown", "start_ns": 2 * SECOND, "end_ns": None},
    ]

    def recorder(self, due: Optional[list[int]]) -> Recorder:
        self.ledger = Ledger(True)
        times = iter([*due, 10**18, 10**18]) if due is not None else None
        return Recorder(self.ledger, Mix(1, [Share(1, 0)]), Segments(self.PARTS), [True], 0, times, lambda text: text[::-1])

    def record(self, at_ns: int, outcome: int = OK, failure: Optional[Failure] = None) -> None:
        self.ledger.records.append(Started(at_ns, Cell(1, 0), 0))
        self.ledger.records.append(Ended(at_ns + 1000, Cell(1, 0), outcome, 1, 0, 0, 100, 500, 0, 1000, failure))

    def stats(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        (cell,) = snapshot["cells"]
        self.assertEqual((cell["segment"], cell["operation"]), (1, 0))
        return cell["stats"]

    def test_what_happened_later_waits_for_its_interval(self) -> None:
        recorder = self.recorder([100, self.SECOND + 100])
        self.record(200)
        self.record(self.SECOND + 200)
        self.assertEqual(recorder.absorb(lambda: self.SECOND + 5000, lambda: None, self.SECOND), self.SECOND)
        first = recorder.snapshot(self.SECOND, {})
        self.assertEqual((self.stats(first)["offered"], self.stats(first)["outcomes"]), (1, {"ok": 1}))
        recorder.absorb(lambda: 2 * self.SECOND, lambda: None, 2 * self.SECOND)
        second = recorder.snapshot(2 * self.SECOND, {})
        self.assertEqual((self.stats(second)["offered"], self.stats(second)["outcomes"]), (1, {"ok": 1}))
        self.assertEqual((second["start_ns"], second["sequence"], second["open"]), (self.SECOND, 1, [0]))

    def test_what_is_cut_has_its_outcome(self) -> None:
        # Five are due: one has ended, one is under way, one is taken back, two were never handed out.
        recorder = self.recorder([1, 2, 3, 4, 5])
        self.record(10)
        self.ledger.records.append(Started(11, Cell(1, 0), 0))
        recorder.absorb(lambda: 1000, lambda: 1000, None)
        self.assertEqual((recorder.measured_open, recorder.in_flight, recorder.behind_ns(1003)), (4, 1, 1000))
        self.ledger.records.append(Abandoned(2000, Cell(1, 0)))
        recorder.absorb(lambda: 3000, lambda: 1000, None)
        recorder.cut([(2, 3)], 3)
        stats = self.stats(recorder.snapshot(3000, {}))
        self.assertEqual(stats["outcomes"], {"ok": 1, "in_flight": 1, "not_started": 3})
        self.assertEqual((stats["offered"], recorder.ended, recorder.measured_open, recorder.cut_off), (5, [5], 0, 4))
        self.assertEqual(recorder.in_flight, 0)

    def test_nothing_is_due_once_the_load_has_ended(self) -> None:
        recorder = self.recorder([1, 500, 900])
        recorder.absorb(lambda: 2000, lambda: 600, None)
        self.assertEqual(self.stats(recorder.snapshot(600, {}))["offered"], 2)
        self.assertEqual(recorder.snapshot(3000, {})["segment"], 2, "from there on it cools down")

    def test_errors_are_counted_by_class_with_one_example(self) -> None:
        recorder = self.recorder(None)
        for number, at_ns in enumerate((50, 20, 70)):
            self.record(at_ns, GAVE_UP, Failure(FailureClass("command", 462, "Limited", ("A", "B")), f"abc{number}"))
        recorder.absorb(lambda: 5000, lambda: None, 5000)
        snapshot = recorder.snapshot(5000, {})
        (error,) = snapshot["errors"]
        self.assertEqual(error["class"], {"kind": "command", "code": 462, "code_name": "Limited", "labels": ["A", "B"]})
        self.assertEqual((error["count"], error["first_ns"], error["last_ns"]), (3, 1020, 1070))
        self.assertEqual((error["example"], error["level"]), ("0cba", "operation"), "redacted")
        stats = self.stats(snapshot)
        self.assertEqual((stats["gave_up"], stats["outcomes"], stats["by_retries"]["0"]["gave_up"]), (3, {"failed": 3}, 3))
        self.assertEqual((stats["offered"], stats["latency_ns"], stats["checkout_ns"]), (3, 3000, 300))


if __name__ == "__main__":
    unittest.main()

"""Whole trials against a real replica set with test commands, which only these tests may be using.

    OVERDRIVE_WORKER_URI=mongodb://… python tests/test_deployment.py
"""

from __future__ import annotations

import os
import sys
import time
import unittest
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import pymongo  # noqa: E402

from fake_parent import PROTOCOL, Worker, distribution, open_model, plan, quantile, run, segments, sums  # noqa: E402

URI = os.environ.get("OVERDRIVE_WORKER_URI", "")
VERSION = pymongo.version_tuple[:2]
OVERLOAD = ["SystemOverloadedError", "RetryableError"]

READ = {"find_one": {"filter": {"_id": {"^Key": {"distribution": "zipfian"}}}}}
BUMP = {"update_one": {"filter": {"_id": {"^Key": {"distribution": "uniform"}}}, "update": {"$inc": {"n": 1}}, "upsert": False}}
PAGES = {"find": {"filter": {}, "limit": 50, "batch_size": 10}}
NAP = {"run_command": {"command": {"sleep": 1, "millis": 300, "lock": "none"}, "database": "admin"}}


def with_option(text: str) -> str:
    return f"{URI}&{text}" if "?" in URI else f"{URI}/?{text}"


@unittest.skipUnless(URI, "OVERDRIVE_WORKER_URI is not set")
class Deployment(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.client: Any = pymongo.MongoClient(URI)
        cls.client.admin.command("ping")
        cls.primary: Any = pymongo.MongoClient(*cls.client.primary, directConnection=True)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.primary.close()

    def setUp(self) -> None:
        self.docs = self.client.overdrive_worker.docs
        self.docs.drop()
        self.docs.insert_many([{"_id": key, "n": 0} for key in range(500)])

    def failpoint(self, commands: list[str], mode: Any, **data: Any) -> int:
        """Sets the failpoint on the primary; returns how often it fired so far. It is off after the test."""
        given = {"failCommands": commands, "appName": "worker", **data}
        reply = self.primary.admin.command("configureFailPoint", "failCommand", mode=mode, data=given)
        self.addCleanup(self.primary.admin.command, "configureFailPoint", "failCommand", mode="off")
        return reply["count"]

    def profiled(self) -> None:
        """From now on, until the test ends, the primary notes what it serves."""
        database = self.primary.overdrive_worker
        database.command("profile", 0)
        database.drop_collection("system.profile")
        database.create_collection("system.profile", capped=True, size=64 << 20)
        database.command("profile", 2)
        self.addCleanup(database.command, "profile", 0)

    def served(self) -> Counter:
        """Commands of the worker that the primary served, by name. Its own counters hold more: what it asks itself about
        sessions, and what other members ask for."""
        names = ("find", "getMore", "insert", "update", "delete", "killCursors")
        notes = self.primary.overdrive_worker.system.profile.find({"appName": "worker"}, {"command": 1, "op": 1})
        # An update is noted by statement, without its command.
        return Counter(next((name for name in names if name in note["command"]), note["op"]) for note in notes)

    def test_counts_are_the_servers_own(self) -> None:
        made = plan({"read": {"weight": 5, **READ}, "bump": {"weight": 3, **BUMP}, "pages": {"weight": 2, **PAGES}})
        fired = self.failpoint(["find", "update", "getMore"], {"activationProbability": 0.3}, errorCode=462, errorLabels=OVERLOAD)
        self.profiled()
        worker = run(made, with_option("appName=worker"))
        served = self.served()
        fired = self.primary.admin.command("configureFailPoint", "failCommand", mode="off")["count"] - fired
        total = sums(worker)
        orphans = sum((Counter(s["orphans"]) for s in worker.snapshots()), Counter())
        self.assertEqual(total["rejected"], fired)
        # A command that is rejected is not noted.
        self.assertEqual(total["attempts"], served["find"] + served["update"] + served["getMore"] + fired, served)
        self.assertLessEqual(set(orphans), {"killCursors"})
        self.assertEqual(total["attempts"], total["commands"] + total["retries"])
        if VERSION >= (4, 17):
            self.assertGreater(total["retries"], 100)
            self.assertGreater(total["backoff_ns"], 0)
        else:
            self.assertEqual((total["retries"], total["backoff_ns"]), (0, 0))
        self.assertGreater(total["gave_up"], 0)
        by_class: Counter = Counter()
        for error in (error for snapshot in worker.snapshots() for error in snapshot["errors"]):
            self.assertEqual(error["class"]["kind"], "command")
            self.assertEqual((error["class"]["code"], error["class"]["code_name"]), (462, "Location462"))
            self.assertLessEqual(set(OVERLOAD), set(error["class"]["labels"]))
            by_class[error["level"]] += error["count"]
        self.assertEqual(by_class, {"attempt": fired, "operation": total["failed"]})
        self.assertEqual(total["gave_up"], total["failed"])

    def test_every_kind_runs(self) -> None:
        key = {"^Key": {"distribution": "uniform"}}
        made = plan({
            "find_one": {"find_one": {"filter": {"_id": key}, "projection": {"n": 1}, "sort": {"_id": -1}}},
            "find": PAGES,
            "aggregate": {"aggregate": {"pipeline": [{"$match": {"_id": {"$lt": 50}}}, {"$sort": {"n": 1}}], "batch_size": 20}},
            "count": {"count": {"filter": {"_id": {"$gt": key}}}},
            "distinct": {"distinct": {"field": "n", "filter": {}}},
            "insert_one": {"insert_one": {"document": None}},
            "insert_many": {"insert_many": {"count": 5, "ordered": False, "document": None}},
            "insert_own": {"insert_one": {"document": {"n": 1}}},
            "update_one": BUMP,
            "update_many": {"update_many": {"filter": {"_id": {"$lt": 20}}, "update": [{"$set": {"n": {"$add": ["$n", 1]}}}], "upsert": False}},
            "replace_one": {"replace_one": {"filter": {"_id": key}, "replacement": {"n": 5}, "upsert": True}},
            "delete_one": {"delete_one": {"filter": {"_id": {"^Key": {"distribution": "sequential"}}}}},
            "delete_many": {"delete_many": {"filter": {"_id": 99999}}},
            "find_one_and_update": {"find_one_and_update": {"filter": {"_id": key}, "update": {"$set": {"t": {"^Now": {}}}}, "upsert": False}},
            "run_command": {"run_command": {"command": {"ping": 1}, "database": None}},
        }, load={"warmup": "0s", "duration": "2s"})  # fmt: skip
        worker = run(made, URI)
        # One that becomes due just when the load ends may not be begun any more.
        total = sums(worker, segment=1)
        self.assertEqual((total["ok"], total["failed"]), (total["offered"], 0), [s["errors"] for s in worker.snapshots()])
        self.assertTrue(all(count > 5 for count in worker.said[-1][1]["ended"]))
        kinds = dict(zip((o["name"] for o in made["operations"]), range(99)))
        inserted = sums(worker, operation=kinds["insert_one"])["ok"] + 5 * sums(worker, operation=kinds["insert_many"])["ok"]
        # New keys follow the loaded ones without a gap, and nothing else has integers up there.
        self.assertEqual(self.docs.count_documents({"_id": {"$gte": 500}}), inserted)
        self.assertEqual(self.docs.count_documents({"_id": {"$type": "objectId"}}), sums(worker, operation=kinds["insert_own"])["ok"])
        # A find of 50 in batches of 10 has five commands.
        self.assertEqual(sums(worker, operation=kinds["find"])["commands"] % 5, 0)

    def test_light_mode_counts_by_pool_events(self) -> None:
        made = plan({"read": READ, "bump": BUMP}, attempts="light", load={"duration": "2s"})
        self.profiled()
        total = sums(run(made, with_option("appName=worker")))
        served = self.served()
        self.assertEqual(total["attempts"], served["find"] + served["update"])
        self.assertEqual(total["attempts"], total["attempt_ok times"])

    def test_a_closed_load_starts_what_it_offers(self) -> None:
        made = plan({"read": READ}, load={"model": {"closed": {"workers": 4}}, "duration": "2s"})
        worker = run(made, URI, first=1000)
        total = sums(worker)
        self.assertEqual(total["offered"], total["ok"])
        self.assertGreater(total["offered"], 300)
        beyond = dict(worker.said)["closed"]["next"] - 1000 - total["offered"]
        self.assertIn(beyond, range(6), "each worker may have taken one more")
        self.assertEqual({s["generator"]["workers"] for s in worker.snapshots()}, {4})

    def test_latency_counts_from_the_intended_start(self) -> None:
        # Two at a time, 300 ms each, of ten a second: a backlog grows, and is worked off by the 5 s of cool-down or cut.
        made = plan({"nap": NAP}, load={"model": open_model(10, max_in_flight=2), "warmup": "0s", "cooldown": "1s"})
        worker = run(made, URI)
        total = sums(worker)
        self.assertGreater(total["not_started"], 5)
        self.assertGreater(quantile(distribution(worker, "lag"), 0.9), 500_000)
        self.assertGreater(worker.snapshots()[2]["generator"]["behind_ns"], 500_000_000)
        self.assertTrue(worker.said[-1][1]["cut"])
        self.assertEqual(total["latency_ns"] >= total["wait_ns"] + total["attempt_ns"], True)

    def test_what_does_not_end_is_in_flight(self) -> None:
        made = plan({"nap": {"run_command": {"command": {"sleep": 1, "millis": 9000, "lock": "none"}, "database": "admin"}}},
                    load={"model": open_model(5), "warmup": "0s"})  # fmt: skip
        worker = run(made, URI, stop_after=1.1)
        total = sums(worker)
        self.assertEqual((total["in_flight"], total["offered"], total["attempts"]), (6, 6, 6))
        self.assertTrue(worker.said[-1][1]["cut"])
        self.assertEqual(worker.snapshots()[-1]["segment"], 2)

    def test_intervals_end_at_seconds_and_borders(self) -> None:
        made = plan({"read": READ}, load={"warmup": "1s500ms", "duration": "2s", "model": open_model(100, 2)})
        worker = run(made, URI, parts=segments(made, (2_250_000_000,)))
        ends = [snapshot["end_ns"] for snapshot in worker.snapshots()]
        self.assertEqual(ends[:6], [10**9, 1_500_000_000, 2 * 10**9, 2_250_000_000, 3 * 10**9, 3_500_000_000])
        self.assertEqual([s["segment"] for s in worker.snapshots()][:6], [0, 0, 1, 1, 2, 2])
        # Even arrivals: exact to one.
        for segment, wanted in ((0, 150), (1, 75), (2, 125)):
            self.assertLessEqual(abs(sums(worker, segment)["offered"] - wanted), 1)

    @unittest.skipUnless(VERSION >= (4, 2), "pymongo.timeout() is not there yet")
    def test_a_deadline_times_out(self) -> None:
        made = plan({"nap": NAP, "read": READ}, timeout={"operation": "100ms"}, load={"model": open_model(20), "warmup": "0s"})
        worker = run(made, URI)
        naps = sums(worker, operation=0)
        self.assertGreater(naps["timed_out"], 10)
        self.assertEqual((naps["ok"], naps["failed"]), (0, 0))
        kinds = {e["class"]["kind"] for s in worker.snapshots() for e in s["errors"] if e["level"] == "operation"}
        self.assertIn("timeout", kinds)

    @unittest.skipIf(VERSION >= (4, 2), "pymongo.timeout() is there")
    def test_a_deadline_needs_a_newer_driver(self) -> None:
        with self.assertRaisesRegex(AssertionError, "needs PyMongo 4.2"):
            run(plan({"read": READ}, timeout={"operation": "100ms"}), URI)

    def test_the_application_calls_again(self) -> None:
        policy = {"kind": "full_jitter", "max_attempts": 4, "base": "20ms", "cap": "100ms"}
        made = plan({"read": READ}, backoff=policy, load={"model": open_model(50)})
        # A code that no driver retries by itself, and an application does.
        self.failpoint(["find"], {"activationProbability": 0.4}, errorCode=50)
        total = sums(run(made, with_option("appName=worker")))
        self.assertEqual(total["calls"], total["attempts"])
        self.assertEqual(total["repeated_commands"], total["calls"] - total["ok"] - total["failed"])
        self.assertGreater(total["repeated_commands"], 50)
        self.assertLess(total["failed"], total["offered"] // 10)
        self.assertGreater(total["backoff_ns"], 0)

    def test_broken_connections_are_told(self) -> None:
        self.failpoint(["find"], {"activationProbability": 0.2}, closeConnection=True)
        worker = run(plan({"read": READ}, load={"model": open_model(50)}), with_option("appName=worker&retryReads=false"))
        total = sums(worker)
        self.assertGreater(total["failed"], 10)
        operation = {e["class"]["kind"] for s in worker.snapshots() for e in s["errors"] if e["level"] == "operation"}
        attempt = {e["class"]["kind"] for s in worker.snapshots() for e in s["errors"] if e["level"] == "attempt"}
        self.assertLessEqual(operation, {"io", "pool_cleared"})
        self.assertLessEqual(attempt, {"io", "connect"})
        pools = sum((Counter(row["pool"]) for s in worker.snapshots() for row in s["servers"]), Counter())
        self.assertGreater(pools["clears"], 0)
        self.assertEqual(pools["created"] - sum(n for name, n in pools.items() if name.startswith("closed_")),
                         sum(row["connections_open"] for row in worker.snapshots()[-1]["servers"]))  # fmt: skip

    def test_a_duplicate_key_is_a_write_error(self) -> None:
        made = plan({
            "one": {"insert_one": {"document": {"_id": 1}}},
            "many": {"insert_many": {"count": 2, "ordered": True, "document": {"_id": 1}}},
        }, load={"duration": "1s", "model": open_model(20)})  # fmt: skip
        worker = run(made, URI)
        seen = {(e["operation"], e["class"]["kind"], e["class"]["code"], e["class"]["code_name"])
                for s in worker.snapshots() for e in s["errors"]}  # fmt: skip
        self.assertEqual(seen, {(0, "write", 11000, "DuplicateKey"), (1, "insert_many", 11000, "DuplicateKey")})
        self.assertEqual(sums(worker)["attempts"], sums(worker)["attempt_ok times"], "the server did answer")

    @unittest.skipUnless(VERSION >= (4, 17), "there is no retargeting yet")
    def test_retries_go_to_other_servers(self) -> None:
        if len(self.client.nodes) < 2:
            self.skipTest("there is no other server")
        self.failpoint(["find"], "alwaysOn", errorCode=462, errorLabels=OVERLOAD)
        options = "appName=worker&readPreference=primaryPreferred&enableOverloadRetargeting=true"
        worker = run(plan({"read": READ}, load={"model": open_model(20), "duration": "2s"}), with_option(options))
        total = sums(worker)
        self.assertEqual((total["failed"], total["retargeted"]), (0, total["ok"]))
        rows = {row["address"]: row for row in worker.snapshots()[2]["servers"]}
        primary = rows.pop("{}:{}".format(*self.client.primary))
        self.assertEqual(primary["attempts"], primary["rejected"])
        others = sum((Counter({name: row[name] for name in ("attempts", "retargeted", "rejected")}) for row in rows.values()), Counter())
        self.assertGreater(others["attempts"], 10)
        self.assertEqual((others["retargeted"], others["rejected"]), (others["attempts"], 0))

    def test_a_parent_that_is_gone_ends_it_at_once(self) -> None:
        worker = Worker()
        worker.start(plan({"nap": NAP}, load={"duration": "60s"}), URI)
        worker.until("ready")
        worker.ask("go", {"first": 0})
        worker.until("snapshot")
        worker.process.stdin.close()  # type: ignore[union-attr]
        begun = time.monotonic()
        self.assertEqual(worker.process.wait(5), 1)
        self.assertLess(time.monotonic() - begun, 0.5)
        worker.process.stdout.close()  # type: ignore[union-attr]
        worker._drain.join()
        worker.process.stderr.close()  # type: ignore[union-attr]


class Refusals(unittest.TestCase):
    """What needs no deployment."""

    def refused(self, made: dict[str, Any], uri: str = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300") -> str:
        worker = Worker()
        worker.start(made, uri)
        message = worker.until("failed")["message"]
        self.assertEqual(worker.end(), 1)
        self.assertEqual([name for name, _ in worker.said], ["hello", "failed"])
        return message

    def test_kinds_options_and_generators_that_it_cannot_do_are_named(self) -> None:
        for body, words in (
            ({"bulk_write": {"writes": []}}, ("'odd'", "bulk_write")),
            ({"transaction": {"statements": []}}, ("'odd'", "transaction")),
            ({"find_one": {"filter": {}, "hint": {"a": 1}}}, ("'odd'", "find_one", "hint")),
            ({"find_one": {"filter": {"_id": {"^Walk": {}}}}}, ("'odd'", "find_one", "^Walk")),
            ({"find_one": {"filter": {"_id": {"^Key": {"distribution": "normal"}}}}}, ("'odd'", "normal")),
        ):
            message = self.refused(plan({"odd": body}))
            self.assertTrue(all(word in message for word in words), message)
        self.assertIn("breaker", self.refused(plan({"read": READ}, breaker={"after": 5})))
        self.assertIn("threads", self.refused(plan({"read": READ}, load={"model": {"closed": {"workers": 5000}}}))
                      .replace("thread of", "threads of"))  # fmt: skip

    def test_a_deployment_that_is_not_there_is_told(self) -> None:
        self.assertIn("no primary answers", self.refused(plan({"read": READ})))

    def test_no_password_is_told(self) -> None:
        for uri in (
            "mongodb://u:s3%2Fcr%40et@nowhere.invalid:1/?serverSelectionTimeoutMS=300&replicaSet=s3/cr@et",
            "mongodb://u:s3%2Fcr%40et@a b:x/",
            "mongodb://u:s3%2Fcr%40et@127.0.0.1:1/?serverSelectionTimeoutMS=x&maxPoolSize=s3%2Fcr%40et",
        ):
            worker = Worker()
            worker.start(plan({"read": READ}), uri)
            message = worker.until("failed")["message"]
            worker.end()
            for text in (message, worker.stderr.decode()):
                self.assertNotIn("s3/cr@et", text)
                self.assertNotIn("s3%2Fcr%40et", text)

    def test_other_protocols_are_refused(self) -> None:
        worker = Worker()
        worker.ask("start", {"protocol": PROTOCOL + 1, "plan": {}, "segments": [], "uri": "mongodb://a/"})
        self.assertIn(f"version {PROTOCOL} of", worker.until("failed")["message"])
        self.assertEqual(worker.end(), 1)


if __name__ == "__main__":
    unittest.main()

"""A parent for the worker: starts it, hands it a plan, and checks what it says as overdrive does.

    python tests/fake_parent.py PLAN.json URI      prints the sums of one trial
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Optional

WORKER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(WORKER))

from hdr import decode  # noqa: E402
from protocol import VERSION as PROTOCOL  # noqa: E402
from schedule import span_ns  # noqa: E402


def plan(operations: dict[str, dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """A small plan; operations by name, as {"weight": 1, KIND: BODY}."""
    made = {
        "profile": "test", "description": "", "seed": 7,
        "data": {
            "database": "overdrive_worker", "collection": "docs", "documents": 500,
            "document": {"_id": {"^Key": {"distribution": "sequential"}}, "n": {"$numberInt": "0"}}, "indexes": [],
        },
        "load": {"model": open_model(200), "warmup": "1s", "duration": "3s", "cooldown": "5s"},
        "client": [], "overloads": [], "attempts": "full", "timeout": None, "backoff": None, "staleness": None,
        "live": False, "thresholds": {"fail_if": [], "abort_when": []},
        "operations": [
            {"name": name, "weight": body.get("weight", 1), "action": {k: v for k, v in body.items() if k != "weight"}}
            for name, body in operations.items()
        ],
    }  # fmt: skip
    load = changes.pop("load", {})
    return {**made, **changes, "load": {**made["load"], **load}}


def open_model(rate: float, seconds: int = 3, arrivals: str = "even", max_in_flight: int = 1000) -> dict[str, Any]:
    stage = {"for": f"{seconds}s", "from": f"{rate}/s", "to": f"{rate}/s"}
    return {"open": {"stages": [stage], "arrivals": arrivals, "max_in_flight": max_in_flight}}


def segments(made: dict[str, Any], borders: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """Warm-up, the measured time cut at some offsets, and cool-down."""
    warmup = span_ns(made["load"]["warmup"])
    cuts = [0, warmup, *borders, warmup + span_ns(made["load"]["duration"])]
    names = ["warmup"] + [f"part{i}" for i in range(len(cuts) - 2)]
    parts = [
        {"name": name, "phase": name if name == "warmup" else "measure", "start_ns": start, "end_ns": end}
        for name, start, end in zip(names, cuts, cuts[1:])
    ]
    return parts + [{"name": "cooldown", "phase": "cooldown", "start_ns": cuts[-1], "end_ns": None}]


class Worker:
    """The worker as a process, and all that it has said."""

    def __init__(self, python: str = sys.executable, *options: str) -> None:
        self.process = subprocess.Popen(
            [python, *options, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.said: list[tuple[str, Any]] = []
        self.stderr = b""
        self._drain = threading.Thread(target=self._read_stderr, daemon=True)
        self._drain.start()

    def _read_stderr(self) -> None:
        self.stderr = self.process.stderr.read()  # type: ignore[union-attr]

    def ask(self, name: str, body: Any) -> None:
        self.process.stdin.write(json.dumps({name: body}).encode() + b"\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]

    def start(self, made: dict[str, Any], uri: str, parts: Optional[list[dict[str, Any]]] = None) -> None:
        self.ask("start", {"protocol": PROTOCOL, "plan": made, "segments": parts or segments(made), "uri": uri})

    def until(self, *names: str) -> Any:
        """Reads up to one of some reports; `failed` and the end are errors unless they are waited for."""
        for line in self.process.stdout:  # type: ignore[union-attr]
            (name, body), *_ = json.loads(line).items()
            self.said.append((name, body))
            if name in names:
                return body
            if name == "failed":
                raise AssertionError(body["message"])
        self._drain.join()
        raise AssertionError(f"the worker ended: {self.stderr.decode()}")

    def end(self) -> int:
        code = self.process.wait(30)
        self._drain.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()  # type: ignore[union-attr]
        return code

    def snapshots(self) -> list[dict[str, Any]]:
        return [body for name, body in self.said if name == "snapshot"]


def run(made: dict[str, Any], uri: str, stop_after: Optional[float] = None, first: int = 0, **more: Any) -> Worker:
    """A whole trial; `more` are `python` and `parts`."""
    worker = Worker(more.get("python", sys.executable))
    worker.start(made, uri, more.get("parts"))
    worker.until("ready")
    worker.ask("go", {"first": first})
    if stop_after is not None:
        time.sleep(stop_after)
        worker.ask("stop", {})
    worker.until("done")
    code = worker.end()
    if code != 0:
        raise AssertionError(f"exit code {code}: {worker.stderr.decode()}")
    check(worker, made)
    return worker


def check(worker: Worker, made: dict[str, Any]) -> None:
    """What has to add up in every trial."""
    snapshots, done = worker.snapshots(), worker.said[-1][1]
    end_ns = 0
    for sequence, snapshot in enumerate(snapshots):
        assert (snapshot["sequence"], snapshot["start_ns"]) == (sequence, end_ns), snapshot
        end_ns = snapshot["end_ns"]
        assert all(0 <= count for count in [*snapshot["open"], *snapshot["generator"].values()]), snapshot
    ended = [0] * len(made["operations"])
    for cell in (cell for snapshot in snapshots for cell in snapshot["cells"]):
        ended[cell["operation"]] += sum(cell["stats"]["outcomes"].values())
    assert ended == done["ended"], (ended, done)
    assert sums(worker)["offered"] == sum(ended), (sums(worker)["offered"], ended)
    assert sums(worker)["attempts"] == done["attempts"], (sums(worker)["attempts"], done)
    assert snapshots[-1]["open"] == [0] * len(ended), snapshots[-1]["open"]


def sums(worker: Worker, segment: Optional[int] = None, operation: Optional[int] = None) -> Counter:
    """All counts of a trial by name; outcomes and the numbers of times in distributions among them."""
    total: Counter = Counter()
    for cell in (cell for snapshot in worker.snapshots() for cell in snapshot["cells"]):
        if segment not in (None, cell["segment"]) or operation not in (None, cell["operation"]):
            continue
        for name, value in cell["stats"].items():
            if isinstance(value, int):
                total[name] += value
            elif name == "outcomes":
                total.update(value)
            elif value and "hdr" in value:
                total[f"{name} times"] += sum(decode(value["hdr"]).values())
    return total


def distribution(worker: Worker, name: str) -> dict[int, int]:
    """A distribution over the trial, by microseconds."""
    total: Counter = Counter()
    for cell in (cell for snapshot in worker.snapshots() for cell in snapshot["cells"]):
        if cell["stats"][name]:
            total.update(decode(cell["stats"][name]["hdr"]))
    return dict(total)


def quantile(counts: dict[int, int], share: float) -> int:
    wanted, seen = share * sum(counts.values()), 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= wanted:
            return value
    return 0


def main() -> None:
    made = json.loads(Path(sys.argv[1]).read_text())
    worker = run(made, sys.argv[2])
    for name, count in sorted(sums(worker).items()):
        print(f"{name:24} {count}")
    for name in ("latency", "lag", "attempt_ok", "checkout"):
        counts = distribution(worker, name)
        print(f"{name:24} p50 {quantile(counts, 0.5)} p99 {quantile(counts, 0.99)} us")
    print(worker.stderr.decode(), file=sys.stderr, end="")


if __name__ == "__main__":
    main()

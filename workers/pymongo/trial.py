"""One trial, made ready: what the plan asks for, and a client."""

from __future__ import annotations

import warnings
from typing import Any, Iterator

import pymongo
from pymongo import errors

import failures
from application import Deadline, Policy
from attempts import listeners
from ledger import Ledger
from operations import Workload
from protocol import Redactor, say
from schedule import Segments, due_times, span_ns

# The most threads: beyond that Python does nothing but change between them.
MOST_THREADS = 1000

# What a plan may hold: what is made here, and what is the parent's business. Anything else may be load that is not made.
_KNOWN = {
    "profile", "description", "seed", "data", "load", "client", "driver", "operations", "overloads", "attempts", "timeout",
    "backoff", "flow", "staleness", "live", "thresholds",
}  # fmt: skip


class Trial:
    """A plan, made ready. Whatever this worker cannot do is refused here, before anything is connected."""

    def __init__(self, start: dict[str, Any]) -> None:
        self.plan = plan = start["plan"]
        unknown = [name for name, value in plan.items() if name not in _KNOWN and value is not None]
        unknown += [f"flow.{name}" for name, value in plan.get("flow", {}).items() if value is not None]
        if unknown:
            raise ValueError(f"the plan has `{unknown[0]}`, which the PyMongo worker does not know")
        self.uri: str = start["uri"]
        self.segments = Segments(start["segments"])
        self.workload = Workload(plan)
        self.cooldown_ns = span_ns(plan["load"]["cooldown"])
        (self.model, self.shape), *_ = plan["load"]["model"].items()
        if self.model not in ("open", "closed"):
            raise ValueError(f"the PyMongo worker knows no load of the model '{self.model}'")
        if self.model == "closed" and self.shape["workers"] > MOST_THREADS:
            raise ValueError(f"the PyMongo worker has at most {MOST_THREADS} workers: each is a thread of Python's")
        # Refused now if it is beyond this worker.
        self.deadline = Deadline(plan.get("timeout"))
        self.policy = Policy(plan["backoff"]) if plan.get("backoff") else None
        self.ledger = Ledger(commands=plan["attempts"] == "full")

    def due_times(self) -> Iterator[int]:
        """When operations are due in the open model."""
        warmup = self.plan["load"]["warmup"]
        return due_times(warmup, self.shape["stages"], self.shape["arrivals"], self.plan["seed"])

    def connect(self, redact: Redactor) -> Any:
        """A client that knows the primary."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                client: Any = pymongo.MongoClient(self.uri, event_listeners=listeners(self.ledger))
            except (errors.PyMongoError, ValueError, TypeError) as error:
                raise ValueError(f"the driver refuses the connection string: {error}") from None
        for warning in told:
            say(redact(f"pymongo says: {warning.message}"))
        try:
            client.admin.command("ping")
        except errors.ServerSelectionTimeoutError as error:
            raise ValueError(f"no primary answers: is it running, and reachable from here?\n  the driver says: {error}") from None
        except errors.PyMongoError as error:
            # A primary that sheds load is one.
            if not failures.is_overload(error):
                raise ValueError(f"the deployment does not let us in: {failures.classify(error).example}") from None
        return client

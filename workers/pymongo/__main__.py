"""overdrive's worker for PyMongo: makes one trial's load, as the child protocol has it on stdin and stdout.

    python DIR                     is run by overdrive
    python DIR --render PLAN N     prints what operations 0..N of a plan render to, one JSON object a line
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import traceback
from itertools import islice
from typing import Any, Optional

import pymongo
from bson import json_util

import drive
from operations import Workload
from protocol import VERSION, Redactor, Reports, Requests, say
from schedule import due_times
from trial import Trial

# How long a thread that computes may keep the interpreter from the pacer and from those who have an answer to read.
_SWITCH_INTERVAL = 0.001


def serve() -> None:
    # Keys on the terminal are for the parent, which says what follows from them.
    for name in ("SIGINT", "SIGQUIT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    reports, requests = Reports(sys.stdout.buffer), Requests(sys.stdin.buffer)
    reports.send("hello", {"protocol": VERSION, "driver": "pymongo", "version": pymongo.version})
    for work in (requests.read, reports.keep_alive):
        threading.Thread(target=work, name=work.__name__, daemon=True).start()
    redact: Optional[Redactor] = None
    try:
        request = requests.next()
        if request is None or request[0] != "start":
            raise ValueError("the first request has to be start")
        start: dict[str, Any] = request[1]
        redact = Redactor(start["uri"])
        if start["protocol"] != VERSION:
            raise ValueError(f"this worker speaks version {VERSION} of the protocol, not {start['protocol']}")
        trial = Trial(start)
        # What is there by now stays: collections of garbage need not look at it again and again.
        gc.collect()
        gc.freeze()
        drive.run(trial, requests, reports, redact)
    except Exception as error:
        hide = redact or (lambda text: "")
        # Mistakes in the plan and the deployment are told in words; where anything else came from has to be seen.
        if not isinstance(error, ValueError):
            say(hide(traceback.format_exc()))
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        reports.send("failed", {"message": hide(text) or "the start request is not understood"})
        requests.exit_code = 1
    # At once: threads that are stuck in a call would be waited for.
    sys.stderr.flush()
    os._exit(requests.exit_code)


def render(path: str, count: int) -> None:
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    workload = Workload(plan)
    (model, shape), *_ = plan["load"]["model"].items()
    times = due_times(plan["load"]["warmup"], shape["stages"], shape["arrivals"], plan["seed"]) if model == "open" else None
    due = list(islice(times, count)) if times else [None] * count
    for n in range(count):
        statement, _, draw = workload.instance(n)
        rendered: list[Any] = []
        for value in statement.render(draw).values():
            # An insert's documents and a pipeline's stages stand by themselves.
            rendered.extend(value if isinstance(value, list) else [value])
        line = {"n": n, "operation": statement.name, "documents": rendered, "due_ns": due[n]}
        documents = json_util.dumps(rendered, json_options=json_util.CANONICAL_JSON_OPTIONS)
        print(json.dumps({**line, "documents": json.loads(documents)}, ensure_ascii=False))


def main() -> None:
    if sys.argv[1:2] == ["--render"]:
        render(sys.argv[2], int(sys.argv[3]))
        return
    sys.setswitchinterval(_SWITCH_INTERVAL)
    serve()


main()

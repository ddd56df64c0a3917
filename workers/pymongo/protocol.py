"""The child protocol: requests on stdin, reports on stdout, one JSON object a line."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from typing import Any, BinaryIO, Optional
from urllib.parse import quote, quote_plus, unquote, unquote_plus

VERSION = 2

# Something is said at least every five seconds.
_SILENCE = 3.0

# Options whose values are secrets, or hold some.
_SECRET_OPTIONS = ("proxypassword", "tlscertificatekeyfilepassword", "ssl_pem_passphrase", "authmechanismproperties")


class Reports:
    """What the parent is told. Any thread may speak."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._last = time.monotonic()
        self._ended = False

    def send(self, name: str, body: Any) -> None:
        """Says one thing; nothing follows after `done` or `failed`."""
        line = json.dumps({name: body}, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
        with self._lock:
            if self._ended:
                return
            self._ended = name in ("done", "failed")
            self._out.write(line)
            self._out.flush()
            self._last = time.monotonic()

    def keep_alive(self) -> None:
        """From a thread of its own: says so when nothing else was said."""
        while True:
            time.sleep(1.0)
            if time.monotonic() - self._last >= _SILENCE:
                self.send("alive", {})


def say(text: str) -> None:
    """Tells people something, beside the protocol."""
    print(text, file=sys.stderr, flush=True)


class Requests:
    """What the parent asks for, in order, read by a thread of its own."""

    def __init__(self, lines: BinaryIO) -> None:
        self._lines = lines
        self._queue: queue.Queue[tuple[str, Any]] = queue.Queue()
        # With what the process exits once the parent is gone; a parent may go as soon as it has heard all.
        self.exit_code = 1

    def read(self) -> None:
        """Reads until the parent is gone, and then exits at once, whatever else is going on."""
        try:
            for line in self._lines:
                if line.strip():
                    (name, body), *_ = json.loads(line).items()
                    self._queue.put((name, body))
        except (ValueError, AttributeError, OSError) as error:
            # No text of the request: it may hold a password.
            self.died(ValueError(f"a request is not understood ({type(error).__name__})"))
            time.sleep(1.0)
        os._exit(self.exit_code)

    def died(self, error: BaseException) -> None:
        """Lets whoever waits for a request know that a thread has ended before its time."""
        self._queue.put(("died", error))

    def next(self, seconds: Optional[float] = None) -> Optional[tuple[str, Any]]:
        """The next request; None when there was none for so long."""
        try:
            name, body = self._queue.get(timeout=seconds)
        except queue.Empty:
            return None
        if name == "died":
            raise body
        return name, body


class Redactor:
    """Keeps a connection string's secrets out of texts that others wrote."""

    def __init__(self, uri: str) -> None:
        forms = {form for secret in _secrets(uri) for form in _forms(secret)} - {""}
        # The longest first: a part must not be taken out of a whole that would then no longer be found.
        self._forms = sorted(forms, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, "***")
        return text


def _secrets(uri: str) -> list[str]:
    rest = uri.partition("://")[2]
    authority, _, options = rest.partition("?")
    userinfo = authority.rpartition("@")[0]
    secrets = [userinfo, userinfo.partition(":")[2]] if ":" in userinfo else []
    for option in options.split("&"):
        name, _, value = option.partition("=")
        if name.lower() in _SECRET_OPTIONS:
            # Properties are name:value pairs, some of which are secrets.
            secrets += [value] + [pair.partition(":")[2] for pair in unquote(value).split(",")]
    return secrets


def _forms(secret: str) -> list[str]:
    """The ways in which a program may print a text."""
    decoded = unquote(secret)
    return [secret, decoded, unquote_plus(secret), quote(decoded, safe=""), quote_plus(decoded), repr(decoded)[1:-1]]

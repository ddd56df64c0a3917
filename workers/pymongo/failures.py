"""Errors by class: what went wrong, without the particulars."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional

import bson.errors
from pymongo import errors

OVERLOADED = "SystemOverloadedError"
RETRYABLE = "RetryableError"

# Labels that drivers and servers put on errors. There is no public list of an error's labels, only a question for each.
_LABELS = (
    OVERLOADED,
    RETRYABLE,
    "NoWritesPerformed",
    "RetryableWriteError",
    "TransientTransactionError",
    "UnknownTransactionCommitResult",
    "ResumableChangeStreamError",
)
# Labels that say that the same again may succeed.
_PASSING = (OVERLOADED, "RetryableWriteError", "TransientTransactionError")
# Codes of the specification on retryable reads, a write conflict, and a time limit.
_PASSING_CODES = {6, 7, 50, 89, 91, 112, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
_PASSING_KINDS = {"io", "server_selection", "pool_cleared", "checkout_timeout"}

# Servers leave the names of write errors out; these are the ones a load meets.
_WRITE_ERRORS = {112: "WriteConflict", 121: "DocumentValidationFailure", 11000: "DuplicateKey"}


class FailureClass(NamedTuple):
    """What errors are counted by."""

    kind: str
    code: Optional[int] = None
    code_name: str = ""
    labels: tuple[str, ...] = ()


class Failure(NamedTuple):
    """An error's class, and what it said."""

    group: FailureClass
    example: str


class TemplateError(Exception):
    """A template renders to something that its place does not take."""


def is_overload(error: BaseException) -> bool:
    return isinstance(error, errors.PyMongoError) and error.has_error_label(OVERLOADED)


def is_retryable_overload(error: BaseException) -> bool:
    return is_overload(error) and error.has_error_label(RETRYABLE)  # type: ignore[attr-defined]


def is_timeout(error: BaseException) -> bool:
    """Whether a deadline passed: the property is there from PyMongo 4.2 on."""
    return isinstance(error, errors.PyMongoError) and bool(getattr(error, "timeout", False))


def is_worth_another_call(error: BaseException) -> bool:
    """Whether an application may hope that another call succeeds."""
    if not isinstance(error, errors.PyMongoError):
        return False
    if any(error.has_error_label(label) for label in _PASSING):
        return True
    group = classify(error).group
    return group.kind in _PASSING_KINDS or (group.kind == "command" and passes(group.code))


def passes(code: Optional[int]) -> bool:
    """Whether the same may succeed later where a server gives this code."""
    return code in _PASSING_CODES


def name_of(error: Mapping[str, Any]) -> str:
    """What a write error's code is called; may be empty."""
    return str(error.get("codeName") or _WRITE_ERRORS.get(error.get("code", 0), ""))


def classify(error: BaseException) -> Failure:
    """What an application sees."""
    kind = _kind(error)
    if not isinstance(error, errors.PyMongoError):
        return Failure(FailureClass(kind), f"{type(error).__name__}: {error}" if kind == "panic" else str(error))
    details = getattr(error, "details", None)
    details = details if isinstance(details, Mapping) else {}
    labels = {label for label in _LABELS if error.has_error_label(label)}
    labels.update(details.get("errorLabels") or ())
    told = _first_of_many(details) if isinstance(error, errors.BulkWriteError) else details
    code = told.get("code", getattr(error, "code", None))
    name = told.get("codeName") or (_WRITE_ERRORS.get(code, "") if kind in ("write", "insert_many") else "")
    return Failure(FailureClass(kind, code, name, tuple(sorted(labels))), told.get("errmsg") or str(error))


def classify_reply(reply: Mapping[str, Any]) -> Optional[Failure]:
    """The error of the write concern in a reply that is otherwise a success."""
    error = reply.get("writeConcernError")
    if not isinstance(error, Mapping):
        return None
    labels = reply.get("errorLabels") or error.get("errorLabels") or ()
    return _answer("write_concern", error, labels)


def classify_event(failure: Mapping[str, Any]) -> Failure:
    """What an event says of a command that failed: the server's answer, or an exception without one."""
    kind = failure.get("errtype")
    if kind is not None:
        known = getattr(errors, str(kind), None)
        network = isinstance(known, type) and issubclass(known, errors.ConnectionFailure)
        network = network or str(kind) in ("OSError", "ConnectionResetError", "BrokenPipeError", "timeout", "TimeoutError")
        return Failure(FailureClass("io" if network else "internal"), str(failure.get("errmsg", "")))
    # What is no reply is the part of one that is about the write concern.
    return _answer("command" if "ok" in failure else "write_concern", failure, failure.get("errorLabels") or ())


def is_unanswered(failure: Mapping[str, Any]) -> bool:
    """Whether the driver stopped waiting for the answer."""
    return failure.get("errtype") in ("NetworkTimeout", "timeout", "TimeoutError")


def _answer(kind: str, error: Mapping[str, Any], labels: Any) -> Failure:
    group = FailureClass(kind, error.get("code"), str(error.get("codeName", "")), tuple(sorted(labels)))
    return Failure(group, str(error.get("errmsg", "")))


def _first_of_many(details: Mapping[str, Any]) -> Mapping[str, Any]:
    several = details.get("writeErrors") or details.get("writeConcernErrors") or [{}]
    return several[0]


def _kind(error: BaseException) -> str:
    """The first that fits; names as overdrive has them for the same in other drivers."""
    if isinstance(error, (errors.NotPrimaryError, errors.OperationFailure)) and getattr(error, "code", None) == 18:
        return "authentication"
    # Not public, and not in every version: told by name.
    if type(error).__name__ in ("_PoolClosedError", "PoolClearedError") or "pool paused" in str(error):
        return "pool_cleared"
    for kind, types in _KINDS:
        if isinstance(error, types):
            return kind
    return "other" if isinstance(error, errors.PyMongoError) else "panic"


_KINDS: tuple[tuple[str, Any], ...] = (
    ("template", TemplateError),
    ("insert_many", errors.BulkWriteError),
    ("write_concern", errors.WriteConcernError),
    ("write", errors.WriteError),
    ("server_selection", errors.ServerSelectionTimeoutError),
    # From PyMongo 4.2 on.
    ("checkout_timeout", getattr(errors, "WaitQueueTimeoutError", ())),
    # The server's word; a connection that broke has none.
    ("command", (errors.NotPrimaryError, errors.OperationFailure)),
    ("io", errors.ConnectionFailure),
    ("invalid_argument", (errors.ConfigurationError, errors.InvalidOperation, errors.DocumentTooLarge)),
    ("bson", (bson.errors.BSONError, errors.InvalidName, OverflowError)),
    ("invalid_response", errors.ProtocolError),
)

"""The kinds of operation: how each is rendered, and how it is run through the driver, the way an application would."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

from failures import TemplateError
from items import Bulk
from mix import Mix, Share
from template import Draw, Render, as_document, compile_template, new_keys

class Target(NamedTuple):
    """What statements run on."""

    client: Any
    database: Any
    collection: Any


class Statement(NamedTuple):
    """An operation of the plan, ready to run."""

    name: str
    kind: str
    # How many new keys one execution takes.
    new_keys: int
    # Whether one call always sends exactly one command.
    is_single_command: bool
    # The values that one call sends, by name and in the order of their drawing.
    render: Callable[[Draw], dict[str, Any]]
    execute: Callable[[Target, dict[str, Any]], None]
    # What it is as a bulk, whose items are its `documents`; None for what has no items.
    bulk: Optional[Bulk]


class Workload:
    """A plan's operations in their order. The n-th is the same in every run with the same plan."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._seed = plan["seed"]
        self._documents = plan["data"]["documents"]
        self.statements = [_statement(operation, plan["data"]) for operation in plan["operations"]]
        weights = [operation["weight"] for operation in plan["operations"]]
        self.mix = Mix(self._seed, [Share(w, s.new_keys) for w, s in zip(weights, self.statements)])

    def instance(self, n: int) -> tuple[Statement, int, Draw]:
        """The n-th operation, its position in the plan, and all random choices it will make."""
        place = self.mix.at(n)
        draw = Draw.operation(self._seed, n, self._documents, place.occurrence, place.new_keys)
        return self.statements[place.operation], place.operation, draw


class _Body:
    """An operation's fields while it is compiled; every one has to be asked for."""

    def __init__(self, fields: dict[str, Any], data: dict[str, Any]) -> None:
        self._fields = dict(fields)
        self.data = data
        self.new_keys = 0

    def plain(self, name: str, default: Any = None) -> Any:
        value = self._fields.pop(name, None)
        return default if value is None else value

    def template(self, name: str) -> Optional[Render]:
        value = self.plain(name)
        if value is None:
            return None
        self.new_keys += new_keys(value)
        return compile_template(value, self.data["documents"])

    def required(self, name: str) -> Render:
        render = self.template(name)
        if render is None:
            raise ValueError(f"needs `{name}`")
        return render

    def refuse_others(self) -> None:
        others = [name for name, value in self._fields.items() if value is not None]
        if others:
            raise ValueError(f"the option `{others[0]}` is not known here")


def _statement(operation: dict[str, Any], data: dict[str, Any]) -> Statement:
    (kind, fields), *_ = operation["action"].items()
    name = operation["name"]
    if kind not in _KINDS:
        raise ValueError(f"operation '{name}' is of the kind {kind}, which the PyMongo worker cannot do")
    body = _Body(fields, data)
    try:
        render, execute = _KINDS[kind](body)
        body.refuse_others()
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"operation '{name}' ({kind}) cannot be done by the PyMongo worker: {error}") from error
    is_single_command = kind not in ("find", "aggregate", "insert_many")
    bulk = Bulk(fields["count"], fields.get("ordered", True)) if kind == "insert_many" else None
    return Statement(name, kind, body.new_keys, is_single_command, render, execute, bulk)


def _find_options(body: _Body) -> Callable[[Draw], dict[str, Any]]:
    filter_, projection, sort = body.required("filter"), body.template("projection"), body.template("sort")

    def render(draw: Draw) -> dict[str, Any]:
        rendered: dict[str, Any] = {"filter": as_document(filter_, draw)}
        if projection is not None:
            rendered["projection"] = as_document(projection, draw)
        if sort is not None:
            rendered["sort"] = as_document(sort, draw)
        return rendered

    return render


def _with_order(rendered: dict[str, Any]) -> dict[str, Any]:
    # Older versions take pairs alone.
    return {**rendered, "sort": list(rendered["sort"].items())} if "sort" in rendered else rendered


def _find_one(body: _Body) -> Any:
    return _find_options(body), lambda target, given: target.collection.find_one(**_with_order(given))


def _find(body: _Body) -> Any:
    options, limit, batch_size = _find_options(body), body.template("limit"), body.plain("batch_size", 0)

    def render(draw: Draw) -> dict[str, Any]:
        rendered = options(draw)
        if limit is not None:
            rendered["limit"] = limit(draw)
        return rendered

    def execute(target: Target, given: dict[str, Any]) -> None:
        if not isinstance(given.get("limit", 0), int):
            raise TemplateError("limit renders to something that is no integer")
        _drain(target.collection.find(batch_size=batch_size, **_with_order(given)))

    return render, execute


def _aggregate(body: _Body) -> Any:
    pipeline = body.plain("pipeline")
    stages = [compile_template(stage, body.data["documents"]) for stage in pipeline]
    body.new_keys += new_keys(pipeline)
    options = {"batchSize": size for size in [body.plain("batch_size")] if size is not None}

    def render(draw: Draw) -> dict[str, Any]:
        return {"pipeline": [as_document(stage, draw) for stage in stages]}

    return render, lambda target, given: _drain(target.collection.aggregate(given["pipeline"], **options))


def _drain(cursor: Any) -> None:
    for _ in cursor:
        pass


def _by_filter(execute: Callable[[Any, dict[str, Any]], Any]) -> Callable[[_Body], Any]:
    def kind(body: _Body) -> Any:
        filter_ = body.required("filter")
        return (
            lambda draw: {"filter": as_document(filter_, draw)},
            lambda target, given: execute(target.collection, given["filter"]),
        )

    return kind


def _distinct(body: _Body) -> Any:
    field, filter_ = body.plain("field"), body.required("filter")
    return (
        lambda draw: {"filter": as_document(filter_, draw)},
        lambda target, given: target.collection.distinct(field, given["filter"]),
    )


def _new_document(body: _Body) -> Callable[[Draw], dict[str, Any]]:
    own = body.template("document")
    if own is not None:
        return lambda draw: as_document(own, draw)
    data = compile_template(body.data["document"], body.data["documents"])
    body.new_keys += 1

    def render(draw: Draw) -> dict[str, Any]:
        # The data's own template, with the next new key in every place of a key.
        draw.take_new_key()
        document = as_document(data, draw)
        draw.key = None
        return document

    return render


def _insert_one(body: _Body) -> Any:
    document = _new_document(body)
    return (
        lambda draw: {"document": document(draw)},
        lambda target, given: target.collection.insert_one(given["document"]),
    )


def _insert_many(body: _Body) -> Any:
    count, ordered, document = body.plain("count"), body.plain("ordered", True), _new_document(body)
    body.new_keys *= count

    def render(draw: Draw) -> dict[str, Any]:
        documents = []
        for place in range(count):
            draw.place(place, count)
            documents.append(document(draw))
        return {"documents": documents}

    return render, lambda target, given: target.collection.insert_many(given["documents"], ordered=ordered)


def _update(method: str) -> Callable[[_Body], Any]:
    def kind(body: _Body) -> Any:
        filter_, change, upsert = body.required("filter"), body.required("update"), body.plain("upsert", False)

        def render(draw: Draw) -> dict[str, Any]:
            return {"filter": as_document(filter_, draw), "update": change(draw)}

        def execute(target: Target, given: dict[str, Any]) -> None:
            if not isinstance(given["update"], (dict, list)):
                raise TemplateError("update renders to something that is no document")
            # The driver adds to no change, so a constant one needs no copy.
            getattr(target.collection, method)(given["filter"], given["update"], upsert=upsert)

        return render, execute

    return kind


def _replace_one(body: _Body) -> Any:
    filter_, change, upsert = body.required("filter"), body.required("replacement"), body.plain("upsert", False)
    return (
        lambda draw: {"filter": as_document(filter_, draw), "replacement": as_document(change, draw)},
        lambda target, given: target.collection.replace_one(given["filter"], given["replacement"], upsert=upsert),
    )


def _run_command(body: _Body) -> Any:
    command, database = body.required("command"), body.plain("database")

    def execute(target: Target, given: dict[str, Any]) -> None:
        (target.database if database is None else target.client[database]).command(given["command"])

    return lambda draw: {"command": as_document(command, draw)}, execute


_KINDS: dict[str, Callable[[_Body], Any]] = {
    "find_one": _find_one,
    "find": _find,
    "aggregate": _aggregate,
    "count": _by_filter(lambda collection, filter_: collection.count_documents(filter_)),
    "distinct": _distinct,
    "insert_one": _insert_one,
    "insert_many": _insert_many,
    "update_one": _update("update_one"),
    "update_many": _update("update_many"),
    "replace_one": _replace_one,
    "delete_one": _by_filter(lambda collection, filter_: collection.delete_one(filter_)),
    "delete_many": _by_filter(lambda collection, filter_: collection.delete_many(filter_)),
    "find_one_and_update": _update("find_one_and_update"),
    "run_command": _run_command,
}

"""Templates to BSON values: what the n-th operation renders is a function of the plan's seed and n.

A template is compiled once into a function of a Draw. Everything is rendered in the order of keys and elements from one
random stream; what draws how often is the same as in overdrive itself.
"""

from __future__ import annotations

import datetime
import json
from bisect import bisect_right
from itertools import accumulate
from typing import Any, Callable, Optional

from bson import json_util
from bson.objectid import ObjectId

import keys
from splitmix import MASK, OPERATION, Random, stream

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

# The keys that make a table a value in Extended JSON.
_EXTENDED = {
    "$oid", "$date", "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal", "$binary", "$uuid",
    "$regularExpression", "$timestamp", "$minKey", "$maxKey", "$code",
}  # fmt: skip
# Types that Python's BSON library has no value for: it would send something else.
_FOREIGN = {"$undefined", "$symbol", "$dbPointer"}

Render = Callable[["Draw"], Any]


class Draw:
    """Where the values of one operation come from."""

    __slots__ = ("random", "occurrence", "next_key", "key", "rendering", "element")

    def __init__(self, random: Random, occurrence: int, next_key: int, key: Optional[int] = None) -> None:
        self.random = random
        # How many times the same operation came before in the run.
        self.occurrence = occurrence
        # The next key that no document had yet.
        self.next_key = next_key
        # When given, what every ^Key yields: this is the document with that key.
        self.key = key
        # How many renderings of the same template came before in the run.
        self.rendering = occurrence if key is None else key
        # Where in the arrays around it a generator is being rendered, as one number.
        self.element = 0

    @classmethod
    def operation(cls, seed: int, n: int, documents: int, occurrence: int, new_keys_before: int) -> Draw:
        """For the n-th operation of a run."""
        return cls(stream(seed, OPERATION, n), occurrence, documents + new_keys_before)

    def place(self, place: int, times: int) -> None:
        """What is rendered next is number `place` of `times` renderings of one template in this execution."""
        self.rendering = self.occurrence * times + place

    def take_new_key(self) -> None:
        """Takes a new key and fixes it: what is rendered next is the document with that key."""
        self.key = self.next_key
        self.next_key += 1


class Constant:
    """A template in which nothing varies."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, draw: Draw) -> Any:
        return self.value


def as_document(render: Render, draw: Draw) -> dict[str, Any]:
    """A rendering of its own where a document has to be: the driver may add to it.

    What is no document becomes one that matches nothing.
    """
    value = render(draw)
    return dict(value) if isinstance(value, dict) else {"": value}


def compile_template(template: Any, documents: int, times: int = 1) -> Render:
    """Makes a template of a plan ready; `times` is how often it is rendered in a rendering of the whole."""
    if isinstance(template, list):
        return _array([compile_template(item, documents, times) for item in template])
    if not isinstance(template, dict):
        return Constant(template)
    if _FOREIGN.intersection(template):
        raise ValueError(f"PyMongo has no value for {', '.join(_FOREIGN.intersection(template))}")
    if _EXTENDED.intersection(template):
        return Constant(extended(template))
    name = _generator_name(template)
    if name is not None:
        return _generator(name, template[name], documents, times)
    fields = [(k[1:] if k.startswith("^^") else k, compile_template(v, documents, times)) for k, v in template.items()]
    if all(isinstance(render, Constant) for _, render in fields):
        return Constant({key: render.value for key, render in fields})  # type: ignore[attr-defined]
    return lambda draw: {key: render(draw) for key, render in fields}


def new_keys(template: Any) -> int:
    """How many new keys a rendering takes: the number of ^Key = "next" in it."""
    if isinstance(template, list):
        return sum(map(new_keys, template))
    if not isinstance(template, dict) or _EXTENDED.intersection(template):
        return 0
    name = _generator_name(template)
    if name is None:
        return sum(map(new_keys, template.values()))
    body = template[name]
    if name == "^Key":
        return int((body if isinstance(body, str) else body["distribution"]) == "next")
    if name == "^Array":
        return new_keys(body["of"]) * _length(body)[1]
    if name == "^Join":
        return sum(map(new_keys, body if isinstance(body, list) else body["array"]))
    return 0


def extended(table: Any) -> Any:
    """The value of a table in Extended JSON."""
    return json_util.loads(json.dumps(table), json_options=json_util.CANONICAL_JSON_OPTIONS)


def _generator_name(table: dict[str, Any]) -> Optional[str]:
    name = next(iter(table), "")
    return name if len(table) == 1 and name.startswith("^") and not name.startswith("^^") else None


def _array(items: list[Render]) -> Render:
    if all(isinstance(render, Constant) for render in items):
        return Constant([render.value for render in items])  # type: ignore[attr-defined]
    return lambda draw: [render(draw) for render in items]


def _generator(name: str, body: Any, documents: int, times: int) -> Render:
    if name == "^Key":
        return _key(body, documents)
    if name == "^Int":
        low, high = int(_number(body["min"])), int(_number(body["max"]))
        return lambda draw: draw.random.between(low, high)
    if name == "^Double":
        least, width = float(_number(body["min"])), float(_number(body["max"])) - float(_number(body["min"]))
        return lambda draw: least + draw.random.unit() * width
    if name == "^String":
        return _string(_length(body), body.get("alphabet", ALPHABET))
    if name == "^Choose":
        return _choose(body if isinstance(body, dict) else {"from": body}, documents, times)
    if name == "^Inc":
        return _increment(int(_number(body.get("start", 0))), int(_number(body.get("step", 1))), times)
    if name == "^Now":
        return lambda draw: datetime.datetime.now(datetime.timezone.utc)
    if name == "^ObjectId":
        return _object_id
    if name == "^Bytes":
        return _bytes(_length(body))
    if name == "^Array":
        length = _length(body)
        return _repeat(compile_template(body["of"], documents, times * length[1]), length)
    if name == "^Join":
        body = body if isinstance(body, dict) else {"array": body}
        parts = [compile_template(part, documents, times) for part in body["array"]]
        separator = body.get("sep", "")
        return lambda draw: separator.join(_text(part(draw)) for part in parts)
    raise ValueError(f"there is no generator '{name}' here")


def _key(body: Any, documents: int) -> Render:
    body = {"distribution": body} if isinstance(body, str) else body
    name = body["distribution"]
    shares = {field: float(_number(body.get(field, share))) for field, share in (("hot_set", 0.2), ("hot_operations", 0.8))}
    pick = keys.picker(name, shares, documents)

    def render(draw: Draw) -> int:
        if draw.key is not None:
            return draw.key
        key = pick(draw.random, draw.occurrence, draw.next_key)
        if name == "next":
            draw.next_key = key + 1
        return key

    return render


def _string(length: tuple[int, int], alphabet: str) -> Render:
    letters = len(alphabet)

    def render(draw: Draw) -> str:
        below = draw.random.below
        return "".join([alphabet[below(letters)] for _ in range(_pick_length(draw, length))])

    return render


def _choose(body: dict[str, Any], documents: int, times: int) -> Render:
    choices = [compile_template(choice, documents, times) for choice in body["from"]]
    # Each choice ends where the next begins; equal ones are a weight of 1 each.
    ends = list(accumulate(body.get("weights") or [1] * len(choices)))
    return lambda draw: choices[bisect_right(ends, draw.random.below(ends[-1]))](draw)


def _increment(start: int, step: int, times: int) -> Render:
    def render(draw: Draw) -> int:
        before = draw.rendering if draw.key is None else draw.key
        value = start + step * min(before * times + draw.element, MASK)
        # It stays at the end of 64 bits.
        return max(-(1 << 63), min(value, (1 << 63) - 1))

    return render


def _object_id(draw: Draw) -> ObjectId:
    first, last = draw.random.next(), draw.random.next()
    return ObjectId(first.to_bytes(8, "little") + last.to_bytes(8, "little")[:4])


def _bytes(length: tuple[int, int]) -> Render:
    def render(draw: Draw) -> bytes:
        wanted = _pick_length(draw, length)
        eights = [draw.random.next().to_bytes(8, "little") for _ in range((wanted + 7) // 8)]
        return b"".join(eights)[:wanted]

    return render


def _repeat(of: Render, length: tuple[int, int]) -> Render:
    def render(draw: Draw) -> list[Any]:
        wanted, around = _pick_length(draw, length), draw.element
        items = []
        for place in range(wanted):
            draw.element = around * wanted + place
            items.append(of(draw))
        draw.element = around
        return items

    return render


def _length(body: dict[str, Any]) -> tuple[int, int]:
    if "length" in body:
        return int(_number(body["length"])), int(_number(body["length"]))
    return int(_number(body.get("min_length", 0))), int(_number(body["max_length"]))


def _pick_length(draw: Draw, length: tuple[int, int]) -> int:
    low, high = length
    return low if low == high else low + draw.random.below(high - low + 1)


def _number(value: Any) -> Any:
    return extended(value) if isinstance(value, dict) else value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)

#!/usr/bin/env python3
"""Known answers for workers in other languages: what templates render to under a seed.

A second implementation of the rules in src/document.rs, with the standard library alone. It prints draws.json: a template
with every generator, and what it renders to for some operations and for some loaded documents, as canonical Extended
JSON. "^Now" stands where the wall clock does.

    python3 tests/data/draws.py > tests/data/draws.json
"""

import base64
import json
import math

MASK = 2**64 - 1
THETA = 0.99


class Random:
    """SplitMix64."""

    def __init__(self, state):
        self.state = state & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound):
        return self.next() * bound >> 64

    def unit(self):
        return (self.next() >> 11) / 2**53


def stream(seed, purpose, index):
    """The generator whose seed is output number `index` of the one seeded by the first output for seed XOR purpose."""
    seeds = Random(Random(seed ^ int.from_bytes(purpose, "big")).next())
    for _ in range(index):
        seeds.next()
    return Random(seeds.next())


def zeta(n):
    return math.fsum(1 / i**THETA for i in range(1, n + 1))


def rank(u, n, zetan):
    """Gray et al. 1994, as YCSB's ZipfianGenerator."""
    uz = u * zetan
    if uz < 1:
        return 0
    if uz < 1 + 0.5**THETA:
        return 1
    eta = (1 - (2 / n) ** (1 - THETA)) / (1 - zeta(2) / zetan)
    return min(int(n * (eta * u - eta + 1) ** (1 / (1 - THETA))), n - 1)


def fnv(number):
    result = 0xCBF29CE484222325
    for octet in number.to_bytes(8, "little"):
        result = (result ^ octet) * 1099511628211 & MASK
    return abs(result - 2**64 if result >> 63 else result)


class Draw:
    def __init__(self, random, documents, occurrence, next_key, key=None):
        self.random, self.documents, self.occurrence = random, documents, occurrence
        self.next_key, self.key = next_key, key
        # How often an ^Inc is rendered in one rendering of the template, and which of those this is.
        self.times, self.element = 1, 0

    def length(self, body):
        low = body.get("length", body.get("min_length", 0))
        high = body.get("length", body.get("max_length"))
        return low if low == high else low + self.random.below(high - low + 1)

    def pick_key(self, body):
        if self.key is not None:
            return self.key
        body = {"distribution": body} if isinstance(body, str) else body
        name = body["distribution"]
        if name == "uniform":
            return self.random.below(self.documents)
        if name == "zipfian":
            return fnv(rank(self.random.unit(), 10**10 + 1, 26.46902820178302)) % self.documents
        if name == "latest":
            return self.next_key - 1 - rank(self.random.unit(), self.next_key, zeta(self.next_key))
        if name == "sequential":
            return self.occurrence % self.documents
        if name == "hotspot":
            hot = int(self.documents * number(body.get("hot_set", 0.2)))
            if self.random.unit() < number(body.get("hot_operations", 0.8)):
                return self.random.below(hot)
            return hot + self.random.below(self.documents - hot)
        assert name == "next"
        self.next_key += 1
        return self.next_key - 1

    def render(self, template):
        """Python values; wrapped in a table where JSON alone does not tell the type."""
        if isinstance(template, list):
            return [self.render(item) for item in template]
        if not isinstance(template, dict):
            return template
        names = list(template)
        if len(names) == 1 and names[0].startswith("^") and not names[0].startswith("^^"):
            return self.generate(names[0], template[names[0]])
        if any(name in ("$oid", "$date", "$numberDecimal") for name in names):
            return template
        return {(k[1:] if k.startswith("^^") else k): self.render(v) for k, v in template.items()}

    def generate(self, name, body):
        random = self.random
        if name == "^Key":
            return self.pick_key(body)
        if name == "^Int":
            return body["min"] + random.below(body["max"] - body["min"] + 1)
        if name == "^Double":
            low, high = float(number(body["min"])), float(number(body["max"]))
            return low + random.unit() * (high - low)
        if name == "^String":
            letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
            letters = body.get("alphabet", letters)
            return "".join(letters[random.below(len(letters))] for _ in range(self.length(body)))
        if name == "^Choose":
            body = {"from": body} if isinstance(body, list) else body
            weights = body.get("weights", [1] * len(body["from"]))
            place = random.below(sum(weights))
            for choice, weight in zip(body["from"], weights):
                if place < weight:
                    return self.render(choice)
                place -= weight
        if name == "^Inc":
            before = (self.occurrence if self.key is None else self.key) * self.times + self.element
            value = body.get("start", 0) + body.get("step", 1) * before
            return max(-(2**63), min(value, 2**63 - 1))
        if name == "^Now":
            return "^Now"
        if name == "^ObjectId":
            first, last = random.next(), random.next()
            return {"$oid": (first.to_bytes(8, "little") + last.to_bytes(8, "little")[:4]).hex()}
        if name == "^Bytes":
            length = self.length(body)
            data = b"".join(random.next().to_bytes(8, "little") for _ in range((length + 7) // 8))[:length]
            return {"$binary": {"base64": base64.b64encode(data).decode(), "subType": "00"}}
        if name == "^Array":
            times, element, length = self.times, self.element, self.length(body)
            self.times, items = times * length, []
            for place in range(length):
                self.element = element * length + place
                items.append(self.render(body["of"]))
            self.times, self.element = times, element
            return items
        assert name == "^Join"
        body = {"array": body} if isinstance(body, list) else body
        return body.get("sep", "").join(text(self.render(part)) for part in body["array"])


def number(value):
    return float(value["$numberDouble"]) if isinstance(value, dict) else value


def text(value):
    if isinstance(value, bool):
        return str(value).lower()
    return value["$oid"] if isinstance(value, dict) else str(value)


def canonical(value):
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return {"$numberInt" if -(2**31) <= value < 2**31 else "$numberLong": str(value)}
    if isinstance(value, float):
        return {"$numberDouble": repr(value)}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if isinstance(value, dict) and not any(key in value for key in ("$oid", "$date", "$binary", "$numberDecimal")):
        return {("^" + k if k.startswith("^") else k): canonical(v) for k, v in value.items()}
    return value


TEMPLATE = {
    "_id": {"^Key": "next"},
    "uniform": {"^Key": "uniform"},
    "zipfian": [{"^Key": "zipfian"}, {"^Key": "zipfian"}, {"^Key": "zipfian"}],
    "latest": [{"^Key": "latest"}, {"^Key": "latest"}, {"^Key": "latest"}],
    "sequential": {"^Key": "sequential"},
    "hotspot": [{"^Key": "hotspot"}, {"^Key": {"distribution": "hotspot", "hot_set": 0.01, "hot_operations": 0.5}}],
    "again": {"^Key": "next"},
    "int": {"^Int": {"min": -5, "max": 5}},
    "wide": {"^Int": {"min": -(2**63), "max": 2**63 - 1}},
    "double": {"^Double": {"min": -1, "max": 2.5}},
    "fixed": {"^String": {"length": 12}},
    "varied": {"^String": {"min_length": 2, "max_length": 9, "alphabet": "abcé"}},
    "weighted": {"^Choose": {"from": ["a", {"b": {"^Int": {"min": 0, "max": 99}}}, True], "weights": [1, 5, 2]}},
    "even": {"^Choose": [1, 2.5, None]},
    "inc": {"^Inc": {"start": 100, "step": -3}},
    "incs": {"^Array": {"of": {"^Inc": {}}, "length": 2}},
    "nested": {"^Array": {"of": [{"^Array": {"of": {"^Inc": {"start": 5}}, "length": 3}}, {"^Inc": {}}], "length": 2}},
    "high": {"^Inc": {"start": 2**63 - 3, "step": 2}},
    "low": {"^Inc": {"start": -(2**63) + 1, "step": -1}},
    "oid": {"^ObjectId": {}},
    "bytes": {"^Bytes": {"length": 11}},
    "some bytes": {"^Bytes": {"min_length": 0, "max_length": 20}},
    "array": {"^Array": {"of": {"x": {"^Int": {"min": 0, "max": 9}}}, "min_length": 0, "max_length": 4}},
    "join": {"^Join": {"array": ["user", {"^Key": "uniform"}, {"^String": {"length": 3}}, {"^ObjectId": {}}, True], "sep": "-"}},
    "^^literal": {"$date": {"$numberLong": "0"}},
    "now": {"^Now": {}},
}
SEED, DOCUMENTS, NEW_KEYS = 42, 5000, 2


def main():
    # Operation n is the n-th of a mix of one, so it came n times before, and each takes two new keys.
    operations = [
        Draw(stream(SEED, b"operatio", n), DOCUMENTS, n, DOCUMENTS + NEW_KEYS * n) for n in range(3)
    ]
    loaded = [Draw(stream(SEED, b"document", k), DOCUMENTS, k, DOCUMENTS, key=k) for k in range(3)]
    answers = {
        "seed": SEED,
        "documents": DOCUMENTS,
        "new_keys_per_operation": NEW_KEYS,
        "template": TEMPLATE,
        "operations": [canonical(draw.render(TEMPLATE)) for draw in operations],
        "loaded": [canonical(draw.render(TEMPLATE)) for draw in loaded],
    }
    print(json.dumps(answers, indent=1, ensure_ascii=False))


main()

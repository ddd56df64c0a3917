"""The worker draws, mixes, hashes and encodes as published, and as overdrive's own tests have it."""

from __future__ import annotations

import base64
import csv
import json
import math
import random
import struct
import sys
import unittest
import zlib
from collections import Counter
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from bson import json_util  # noqa: E402
from pymongo.errors import BulkWriteError, OperationFailure  # noqa: E402

import hdr  # noqa: E402
import histogram  # noqa: E402
import keys  # noqa: E402
from application import Pauses, Policy  # noqa: E402
from items import Bulk, Items, LetterBox  # noqa: E402
from mix import Mix, Share  # noqa: E402
from operations import Workload  # noqa: E402
from schedule import due_times, rate_per_second, span_ns  # noqa: E402
from splitmix import ARRIVALS, DOCUMENT, MIX, OPERATION, Random, stream  # noqa: E402
from template import Draw, as_document, compile_template, new_keys  # noqa: E402

SAMPLE = HERE.parents[2] / "results" / "sample"
DRAWS = HERE.parents[2] / "tests" / "data" / "draws.json"


class ItemsOfBulks(unittest.TestCase):
    """As overdrive's own tests have it."""

    def settled(self, items: Items, ordered: bool, *at: tuple[int, int]) -> list[tuple[int, Any]]:
        error = BulkWriteError({"writeErrors": [{"index": index, "code": code, "errmsg": "no"} for index, code in at]})
        found = items.settle(Bulk(5, ordered), error)
        return [(item, told and told["code"]) for item, told in found or ()]

    def left(self, items: Items) -> list[int]:
        return items.pick([0, 1, 2, 3, 4])

    def test_what_was_rejected_goes_again_and_what_is_hopeless_does_not(self) -> None:
        items = Items()
        self.assertEqual(self.left(items), [0, 1, 2, 3, 4])
        self.assertEqual(self.settled(items, False, (1, 11000), (2, 112), (4, 462)), [(1, 11000)])
        self.assertEqual(self.left(items), [2, 4])
        self.assertEqual(self.settled(items, False, (0, 112), (1, 121)), [(4, 121)])
        self.assertEqual(self.left(items), [2])
        self.assertEqual(self.settled(items, False, (0, 11000)), [(2, 11000)])
        self.assertFalse(items.any())

    def test_an_ordered_bulk_ends_where_it_is_hopeless(self) -> None:
        items = Items()
        self.assertEqual(self.settled(items, True, (2, 112)), [])
        self.assertEqual(self.left(items), [2, 3, 4])
        self.assertEqual(self.settled(items, True, (1, 11000)), [(3, 11000), (4, None)])
        self.assertFalse(items.any())

    def test_an_error_of_the_whole_says_nothing_of_items(self) -> None:
        items = Items()
        self.assertIsNone(items.settle(Bulk(5, False), OperationFailure("no", 462)))
        self.assertEqual(self.left(items), [0, 1, 2, 3, 4])

    def test_beyond_a_mebibyte_letters_are_counted(self) -> None:
        box = LetterBox()
        for length in (1 << 20, 10):
            box.put({"message": "x" * (length - 8)}, {"a": 1})
        taken = box.take()
        self.assertEqual((len(taken["letters"]), taken["left_out"]), (1, 1))
        self.assertEqual(box.take(), {})


class RandomNumbers(unittest.TestCase):
    def test_agree_with_the_published_vectors(self) -> None:
        published = {
            1234567: [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821],
            0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC, 0x1B39896A51A8749B],
        }
        for seed, numbers in published.items():
            generator = Random(seed)
            self.assertEqual([generator.next() for _ in numbers], numbers)

    def test_a_stream_is_seeded_by_the_outputs_of_another_generator(self) -> None:
        seeds = Random(Random(42 ^ 0x6F7065726174696F).next())
        for n in range(100):
            self.assertEqual(stream(42, OPERATION, n).state, seeds.next())
        starts = {stream(42, purpose, 0).next() for purpose in (OPERATION, DOCUMENT, MIX, ARRIVALS)}
        self.assertEqual(len(starts), 4)

    def test_the_widest_ranges_work(self) -> None:
        wide = Random(1).between(-(1 << 63), (1 << 63) - 1)
        self.assertEqual(wide, Random(1).next() - (1 << 63))
        self.assertEqual([Random(1).between(5, 5), Random(1).below(0), Random(1).below(1)], [5, 0, 0])


class Keys(unittest.TestCase):
    def test_hash_as_ycsb_names_its_first_records(self) -> None:
        names = [6284781860667377211, 8517097267634966620, 1820151046732198393, 4052466453699787802]
        self.assertEqual([keys.fnv_hash(n) for n in range(4)], names)

    def test_zeta_is_the_sum_at_any_size(self) -> None:
        for n in (0, 1, 2, 3, 1023, 1024, 1025, 1026, 5000, 300_000):
            self.assertAlmostEqual(keys.zeta(n), math.fsum(1 / i**0.99 for i in range(1, n + 1)), delta=1e-12)
        self.assertAlmostEqual(keys.zeta(10_000_000_000), 26.46902820178302, delta=1e-7)

    def test_are_within_the_collection(self) -> None:
        shares = {"hot_set": 0.2, "hot_operations": 0.8}
        for documents in (0, 1, 2, 3, 1000):
            for name in ("uniform", "zipfian", "latest", "sequential", "hotspot"):
                pick, draws = keys.picker(name, shares, documents), Random(1)
                for occurrence in range(200):
                    self.assertIn(pick(draws, occurrence, documents), range(max(1, documents)), name)

    def test_a_hot_set_has_its_share(self) -> None:
        pick, draws = keys.picker("hotspot", {"hot_set": 0.1, "hot_operations": 0.7}, 1000), Random(2026)
        hot = sum(pick(draws, 0, 1000) < 100 for _ in range(20_000))
        self.assertAlmostEqual(hot / 20_000, 0.7, delta=0.015)


class Templates(unittest.TestCase):
    @unittest.skipUnless(DRAWS.exists(), "the known answers lie in overdrive's own tests")
    def test_agree_with_the_known_answers(self) -> None:
        known = json.loads(DRAWS.read_text(encoding="utf-8"))
        seed, documents, template = known["seed"], known["documents"], known["template"]
        taken = new_keys(template)
        self.assertEqual(taken, known["new_keys_per_operation"])
        render = compile_template(template, documents)
        for n, answer in enumerate(known["operations"]):
            self._check(as_document(render, Draw.operation(seed, n, documents, n, n * taken)), answer)
        for key, answer in enumerate(known["loaded"]):
            self._check(as_document(render, Draw(stream(seed, DOCUMENT, key), key, documents, key)), answer)

    def _check(self, rendered: dict[str, Any], answer: dict[str, Any]) -> None:
        self.assertEqual(list(rendered)[-1], "now")
        rendered["now"] = "^Now"
        text = json_util.dumps(rendered, json_options=json_util.CANONICAL_JSON_OPTIONS)
        # A literal key that begins with ^ is escaped in templates alone.
        answer = {key.replace("^^", "^"): value for key, value in answer.items()}
        self.assertEqual(json.dumps(json.loads(text)), json.dumps(answer))

    def test_each_increment_counts_by_itself(self) -> None:
        render = compile_template([{"^Inc": {"start": 10, "step": 2}}, {"^Inc": {}}], 0)
        self.assertEqual([render(Draw.operation(0, 0, 0, n, 0)) for n in range(3)], [[10, 0], [12, 1], [14, 2]])
        draw, rendered = Draw.operation(0, 0, 0, 3, 0), []
        for place in range(2):
            draw.place(place, 2)
            rendered.append(render(draw))
        self.assertEqual(rendered, [[22, 6], [24, 7]])

    def test_increments_go_on_through_arrays_and_stay_at_the_end_of_64_bits(self) -> None:
        elements = {"^Array": {"of": {"^Inc": {}}, "min_length": 2, "max_length": 2}}
        nested = {"^Array": {"of": [elements, {"^Inc": {}}], "length": 2}}
        render = compile_template([nested, {"^Inc": {}}], 0)
        self.assertEqual(render(Draw.operation(0, 0, 0, 0, 0)), [[[[0, 1], 0], [[2, 3], 1]], 0])
        self.assertEqual(render(Draw.operation(0, 0, 0, 1, 0)), [[[[4, 5], 2], [[6, 7], 3]], 1])
        high = compile_template({"^Inc": {"start": 2**63 - 2, "step": 1}}, 0)
        self.assertEqual(high(Draw.operation(0, 0, 0, 2, 0)), 2**63 - 1)

    def test_a_fixed_key_stands_in_every_key_and_draws_nothing(self) -> None:
        render = compile_template({"_id": {"^Key": "next"}, "a": {"^Key": "zipfian"}, "n": {"^Inc": {}}}, 10)
        draw = Draw.operation(1, 5, 10, 3, 4)
        before = draw.random.state
        for key in (14, 15):
            draw.take_new_key()
            self.assertEqual(render(draw), {"_id": key, "a": key, "n": key})
        self.assertEqual((draw.next_key, draw.random.state), (16, before))

    def test_values_keep_their_types(self) -> None:
        values = {"a": {"$numberLong": "5"}, "b": {"$numberInt": "5"}, "c": {"$numberDouble": "5.0"}, "^^d": {"$oid": "5" * 24}}
        render = compile_template(values, 0)
        text = json_util.dumps(render(Draw.operation(0, 0, 0, 0, 0)), json_options=json_util.CANONICAL_JSON_OPTIONS)
        self.assertEqual(json.loads(text), {key.replace("^^", "^"): value for key, value in values.items()})
        for wrong in ({"^Foo": {}}, {"x": {"$symbol": "a"}}, {"^Key": "random"}):
            self.assertRaises(ValueError, compile_template, wrong, 10)

    def test_a_rendered_document_is_the_drivers_own(self) -> None:
        render, draw = compile_template({"n": 1}, 0), Draw.operation(0, 0, 0, 0, 0)
        as_document(render, draw)["_id"] = 5
        self.assertEqual(as_document(render, draw), {"n": 1})
        self.assertEqual(as_document(compile_template(5, 0), draw), {"": 5})


class Mixes(unittest.TestCase):
    SHARES = [Share(70, 0), Share(20, 1), Share(0, 5), Share(10, 3)]

    def test_counts_before_the_nth_are_what_counting_gives(self) -> None:
        mix, seen, taken = Mix(9, self.SHARES), [0] * 4, 0
        for n in range(5000):
            place = mix.at(n)
            self.assertEqual((place.occurrence, place.new_keys), (seen[place.operation], taken), n)
            seen[place.operation] += 1
            taken += self.SHARES[place.operation].new_keys
        self.assertEqual(seen, [3500, 1000, 0, 500])

    def test_any_order_of_asking_gives_the_same_and_seeds_differ(self) -> None:
        forward = [Mix(1, self.SHARES).at(n) for n in range(0, 3000, 7)]
        mix = Mix(1, self.SHARES)
        self.assertEqual([mix.at(n) for n in reversed(range(0, 3000, 7))][::-1], forward)
        self.assertNotEqual([Mix(2, self.SHARES).at(n) for n in range(0, 3000, 7)], forward)


class Schedules(unittest.TestCase):
    def _count(self, stages: list[tuple[int, float, float]], arrivals: str, start_s: float, end_s: float, seed: int = 1) -> int:
        plan = [{"for": f"{s}s", "from": f"{low}/s", "to": f"{high}/s"} for s, low, high in stages]
        times = takewhile(lambda at: at < end_s * 1e9, due_times("3s", plan, arrivals, seed))
        return sum(at >= start_s * 1e9 for at in times)

    def test_even_arrivals_are_exact_to_one(self) -> None:
        for rate in (0.5, 3, 60, 777):
            for start, end in ((0, 3), (3, 23), (22, 23), (23, 60)):
                got = self._count([(20, rate, rate)], "even", start, end)
                self.assertLessEqual(abs(got - rate * (end - start)), 1, (rate, start, end))

    def test_ramps_and_steps_give_the_area_under_the_rate(self) -> None:
        stages = [(10, 0.1, 100), (10, 100, 100), (1, 900, 900), (9, 50, 10)]
        for start, end, area in ((3, 13, 500.5), (13, 23, 1000), (23, 24, 900), (24, 33, 270)):
            self.assertLessEqual(abs(self._count(stages, "even", start, end) - area), 1, (start, end))

    def test_poisson_arrivals_have_the_mean_of_their_rate(self) -> None:
        got = self._count([(100, 60, 60)], "poisson", 3, 103)
        self.assertLessEqual(abs(got - 6000), 3 * math.sqrt(6000))

    def test_the_first_poisson_arrivals_are_what_the_formula_gives(self) -> None:
        draws, position, wanted = stream(5, ARRIVALS, 0), 0.0, []
        for _ in range(50):
            position -= math.log(1 - draws.unit())
            wanted.append(int(position / 100 * 1e9))
        stages = [{"for": "60s", "from": "100/s", "to": "100/s"}]
        for got, want in zip(islice(due_times("0s", stages, "poisson", 5), 50), wanted):
            self.assertLessEqual(abs(got - want), 1)

    def test_units_are_read_as_plans_write_them(self) -> None:
        self.assertEqual([span_ns(text) for text in ("0s", "1m30s", "250ms", "1s500us", "2h")],
                         [0, 90 * 10**9, 250 * 10**6, 10**9 + 500_000, 7200 * 10**9])  # fmt: skip
        self.assertEqual([rate_per_second(text) for text in ("400/s", "0.5/s")], [400.0, 0.5])
        for wrong in ("10", "1 s", "ten", "-1s", ""):
            self.assertRaises(ValueError, span_ns, wrong)
        self.assertRaises(ValueError, rate_per_second, "5/min")


@unittest.skipUnless(SAMPLE.exists(), "overdrive's sample is not here")
class Sample(unittest.TestCase):
    """A run of overdrive's own, of which the results tell what was offered when."""

    def test_the_same_operations_are_due_in_each_segment(self) -> None:
        plan = json.loads((SAMPLE / "run.json").read_text())["trials"][0]["plan"]
        with (SAMPLE / "summary.csv").open() as file:
            rows = [row for row in csv.DictReader(file) if row["segment"] != "all" and row["op"] != "all"]
        warmup = span_ns(plan["load"]["warmup"])
        cuts = [warmup + s * 10**9 for s in (0, 8, 16, 25)]
        shape = plan["load"]["model"]["open"]
        times = due_times(plan["load"]["warmup"], shape["stages"], shape["arrivals"], plan["seed"])
        workload, offered = Workload(plan), Counter()
        for n, at in enumerate(takewhile(lambda at: at < cuts[-1], times)):
            if at >= cuts[0]:
                segment = ("before", "rejection", "after")[sum(at >= cut for cut in cuts[1:])]
                offered[segment, workload.instance(n)[0].name] += 1
        self.assertEqual(offered, {(row["segment"], row["op"]): int(row["offered"]) for row in rows})


class BackoffPauses(unittest.TestCase):
    MS = 1_000_000

    def _pauses(self, kind: str, max_attempts: int, seed: int = 1) -> list[int]:
        policy = Policy({"kind": kind, "max_attempts": max_attempts, "base": "100ms", "cap": "1s"})
        return list(iter(Pauses(policy, Random(seed)).next, None))  # type: ignore[arg-type]

    def test_grow_as_their_kind_says_and_end(self) -> None:
        wanted = {"immediate": [0] * 5, "fixed": [100] * 5, "exponential": [100, 200, 400, 800, 1000]}
        for kind, pauses in wanted.items():
            self.assertEqual(self._pauses(kind, 6), [ms * self.MS for ms in pauses])
        self.assertEqual(self._pauses("fixed", 1), [], "one call is one call")
        self.assertEqual(self._pauses("exponential", 60)[-1], 1000 * self.MS)

    def test_jitter_stays_within_its_bounds(self) -> None:
        for seed in range(200):
            most = self._pauses("exponential", 8)
            self.assertTrue(all(p <= m for p, m in zip(self._pauses("full_jitter", 8, seed), most)))
            self.assertTrue(all(m // 2 <= p <= m for p, m in zip(self._pauses("equal_jitter", 8, seed), most)))
            before = 100 * self.MS
            for pause in self._pauses("decorrelated", 8, seed):
                self.assertTrue(100 * self.MS <= pause <= min(3 * before, 1000 * self.MS))
                before = pause

    def test_unknown_policies_are_refused(self) -> None:
        self.assertRaises(ValueError, Policy, {"kind": "fast", "max_attempts": 2, "base": "1s", "cap": "1s"})
        self.assertRaises(ValueError, Policy, {"kind": "fixed", "max_attempts": 2, "base": "1s", "cap": "1s", "budget": 5})


class Histograms(unittest.TestCase):
    def test_places_are_those_of_the_format(self) -> None:
        # Below 2048 each value has one, then 1024 for every doubling.
        self.assertEqual([histogram.place(v) for v in (0, 1, 2047, 2048, 2049, 2050, 4095, 4096)],
                         [0, 1, 2047, 2048, 2048, 2049, 3071, 3072])  # fmt: skip

    def test_what_is_encoded_is_decoded(self) -> None:
        draws = random.Random(1)
        for size in (1, 2, 10, 1000):
            counts = {draws.randrange(1, 10 ** draws.randrange(1, 9)): draws.randrange(1, 10**6) for _ in range(size)}
            wanted: dict[int, int] = {}
            for value, count in counts.items():
                shift = max(0, value.bit_length() - 11)
                lowest = value >> shift << shift
                wanted[lowest] = wanted.get(lowest, 0) + count
            times = histogram.Latencies()
            times.counts = counts
            self.assertEqual(hdr.decode(times.to_json()["hdr"]), wanted)  # type: ignore[index]
            self.assertGreaterEqual(struct.unpack_from(">q", histogram.encode(counts), 24)[0], max(counts))

    @unittest.skipUnless(SAMPLE.exists(), "overdrive's sample is not here")
    def test_encodes_as_overdrive_does(self) -> None:
        lines = [line for line in (SAMPLE / "latency.hlog").read_text().splitlines() if line.startswith("Tag=")]
        for line in lines:
            # What lies in logs is compressed, behind a cookie and a length.
            theirs = zlib.decompress(base64.b64decode(line.rpartition(",")[2])[8:])
            counts = hdr.decode(base64.b64encode(theirs).decode())
            # The header's bounds may differ.
            self.assertEqual(histogram.encode(counts)[40:], theirs[40:], line[:60])
        self.assertGreater(len(lines), 10)

    def test_times_are_rounded_up_and_clipped(self) -> None:
        times = histogram.Latencies()
        self.assertIsNone(times.to_json())
        for nanos in (0, 1, 1000, 1001, 120_000_000_000, 120_000_000_001):
            times.record(nanos)
        self.assertEqual(times.counts, {1: 3, 2: 1, 120_000_000: 2})
        self.assertEqual((times.clipped, times.sum_ns), (1, 240_000_002_003))


if __name__ == "__main__":
    unittest.main()

use bson::{Bson, DateTime, doc};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn template(value: Value) -> Template {
    Template::from_json(&value).unwrap()
}

/// What another implementation renders: `tests/data/draws.py`.
#[test]
fn agrees_with_the_known_answers() {
    let known: Value = serde_json::from_str(include_str!("../../tests/data/draws.json")).unwrap();
    let whole = |name: &str| known[name].as_u64().unwrap();
    let (seed, documents) = (whole("seed"), whole("documents"));
    let template = template(known["template"].clone());
    assert_eq!(template.new_keys(), whole("new_keys_per_operation"));
    let compiled = Compiled::new(&template, documents);

    let check = |answers: &Value, draw: &dyn Fn(u64) -> Draw| {
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), 3);
        for (n, answer) in (0..).zip(answers) {
            let mut rendered = compiled.document(&mut draw(n));
            let now = rendered.insert("now", "^Now").unwrap();
            let age = DateTime::now().timestamp_millis() - now.as_datetime().unwrap().timestamp_millis();
            assert!((0..60_000).contains(&age));
            let rendered = Template::from(Bson::Document(rendered)).to_json();
            // Through the reader, as the two write the same doubles in different ways.
            let answer = Template::from_json(answer).unwrap().to_json();
            assert_eq!(
                serde_json::to_string_pretty(&rendered).unwrap(),
                serde_json::to_string_pretty(&answer).unwrap()
            );
        }
    };
    check(&known["operations"], &|n| Draw::operation(seed, n, documents, n, n * template.new_keys()));
    check(&known["loaded"], &|key| Draw::loading(seed, key, documents));
}

#[test]
fn a_fixed_key_stands_in_every_key_and_draws_nothing() {
    let compiled = Compiled::new(
        &template(json!({ "_id": { "^Key": "next" }, "a": { "^Key": "zipfian" }, "n": { "^Inc": {} } })),
        10,
    );
    let mut draw = Draw::operation(1, 5, 10, 3, 4);
    assert_eq!(draw.take_new_key(), 14);
    assert_eq!(compiled.document(&mut draw), doc! { "_id": 14, "a": 14, "n": 14 });
    assert_eq!(draw.take_new_key(), 15);
    assert_eq!(compiled.document(&mut draw), doc! { "_id": 15, "a": 15, "n": 15 });
    assert_eq!((draw.next_key, draw.random), (16, Random::for_operation(1, 5)));
    // The document with key 14 would be the same if it were loaded.
    assert_eq!(compiled.document(&mut Draw::loading(1, 14, 20)), doc! { "_id": 14, "a": 14, "n": 14 });
}

#[test]
fn each_increment_counts_by_itself() {
    let two = json!([{ "^Inc": { "start": 10, "step": 2 } }, { "^Inc": {} }]);
    let compiled = Compiled::new(&template(two), 0);
    let at = |occurrence| compiled.render(&mut Draw::operation(0, 0, 0, occurrence, 0));
    assert_eq!([at(0), at(1), at(2)], [[10, 0], [12, 1], [14, 2]].map(Bson::from));
    // Several documents in one execution: the third has six before it.
    let mut draw = Draw::operation(0, 0, 0, 3, 0);
    let rendered = [0, 1].map(|place| {
        draw.rendering(place, 2);
        compiled.render(&mut draw)
    });
    assert_eq!(rendered, [[22, 6], [24, 7]].map(Bson::from));
    // Another template of the same execution.
    draw.rendering(0, 1);
    assert_eq!(compiled.render(&mut draw), Bson::from([16, 3]));
}

#[test]
fn increments_go_on_through_arrays() {
    let elements = json!({ "^Array": { "of": { "^Inc": {} }, "length": 2 } });
    let nested = json!({ "^Array": { "of": [elements, { "^Inc": {} }], "length": 2 } });
    let compiled = Compiled::new(&template(json!([nested, { "^Inc": {} }])), 0);
    let at = |occurrence| compiled.render(&mut Draw::operation(0, 0, 0, occurrence, 0)).to_string();
    assert_eq!(at(0), "[[[[0, 1], 0], [[2, 3], 1]], 0]");
    assert_eq!(at(1), "[[[[4, 5], 2], [[6, 7], 3]], 1]");
}

#[test]
fn increments_stay_at_the_end_of_64_bits() {
    let ends = json!([{ "^Inc": { "start": i64::MAX - 1, "step": 1 } }, { "^Inc": { "start": 5, "step": i64::MIN } }]);
    let compiled = Compiled::new(&template(ends), 0);
    let at = |occurrence| compiled.render(&mut Draw::operation(0, 0, 0, occurrence, 0));
    assert_eq!(at(1), Bson::from([i64::MAX, i64::MIN + 5]));
    assert_eq!(at(2), Bson::from([i64::MAX, i64::MIN]));
    let mut draw = Draw::operation(0, 0, u64::MAX, u64::MAX, u64::MAX);
    draw.rendering(u64::MAX, u64::MAX);
    assert_eq!(compiled.render(&mut draw), Bson::from([i64::MAX, i64::MIN]));
}

#[test]
fn what_is_no_document_becomes_a_filter_without_matches() {
    let compiled = Compiled::new(&template(json!(5)), 0);
    assert_eq!(compiled.document(&mut Draw::operation(0, 0, 0, 0, 0)), doc! { "": 5 });
}

proptest! {
    #[test]
    fn renderings_repeat_and_stay_below_the_foretold_size(seed: u64, n: u64, documents in 0_u64..1_000_000) {
        let known: Value = serde_json::from_str(include_str!("../../tests/data/draws.json")).unwrap();
        let template = template(known["template"].clone());
        let compiled = Compiled::new(&template, documents);
        let render = || {
            let mut document = compiled.document(&mut Draw::operation(seed, n, documents, n, 0));
            document.insert("now", DateTime::from_millis(0));
            document
        };
        let document = render();
        prop_assert!(document.to_vec().unwrap().len() as u64 <= template.max_bytes());
        prop_assert_eq!(document, render());
    }
}

#[test]
fn what_shards_take_in_turn_is_what_the_whole_takes() {
    let template = template(json!({"_id": {"^Key": "next"}, "then": {"^Key": "next"}, "n": {"^Inc": {}}}));
    let (compiled, documents) = (Compiled::new(&template, 10), 10);
    let rendered = |shard: Option<Shard>, executions: u64| {
        let of = move |n| {
            let draw = Draw::operation(1, n, documents, n, 2 * n);
            shard.map_or(draw.clone(), |shard| draw.in_shard(shard, documents))
        };
        let compiled = &compiled;
        (0..executions).map(move |n| compiled.document(&mut of(n))).collect::<Vec<_>>()
    };
    let values = |documents: &[Document], names: &[&str]| {
        let mut all: Vec<i32> =
            documents.iter().flat_map(|d| names.iter().map(|name| d.get_i32(name).unwrap())).collect();
        all.sort_unstable();
        all
    };
    let together: Vec<Document> =
        (0..3).flat_map(|index| rendered(Some(Shard { index, count: 3, start_at: None }), 20)).collect();
    let whole = rendered(None, 60);
    for names in [&["_id", "then"][..], &["n"]] {
        assert_eq!(values(&together, names), values(&whole, names), "{names:?}");
    }
}

#[test]
fn clients_take_turns_for_what_has_to_be_unique_alone() {
    let template = template(json!({"_id": {"^Key": "next"}, "n": {"^Inc": {}}, "k": {"^Key": "sequential"}}));
    let (compiled, documents) = (Compiled::new(&template, 10), 10);
    let of = |index: u32, n: u64| {
        let draw = Draw::operation(1, n, documents, n, n);
        let mut draw = draw.in_turn(Turn { index, count: 2 }, documents);
        draw.rendering(0, 1);
        let document = compiled.document(&mut draw);
        ["_id", "n", "k"].map(|name| document.get_i32(name).unwrap())
    };
    assert_eq!([of(0, 0), of(0, 1), of(0, 2)], [[10, 0, 0], [12, 2, 1], [14, 4, 2]]);
    assert_eq!([of(1, 0), of(1, 1), of(1, 2)], [[11, 1, 0], [13, 3, 1], [15, 5, 2]]);
}

#[test]
fn shards_draw_each_its_own_from_the_whole_key_space() {
    let plan = crate::results::testing::plan();
    let shard = |index, count| Shard { index, count, start_at: None };
    let seeds: Vec<u64> = (0..4).map(|index| seed(&plan.divided(shard(index, 4)).unwrap())).collect();
    for (i, one) in seeds.iter().enumerate() {
        assert!(*one != plan.seed && !seeds[i + 1..].contains(one), "{seeds:?}");
    }
    assert_eq!(seed(&plan.divided(shard(0, 1)).unwrap()), plan.seed, "one alone is the whole");
    assert_eq!(seed(&plan), plan.seed);

    let keys = |distribution: &str, index: u32, n: u64| {
        let compiled = Compiled::new(&template(json!({"k": {"^Key": distribution}})), 100);
        let draw = Draw::operation(seeds[index as usize], n, 100, n, 0).in_shard(shard(index, 4), 100);
        compiled.document(&mut draw.clone()).get_i32("k").unwrap()
    };
    for index in 0..4 {
        for distribution in ["uniform", "zipfian", "latest"] {
            let drawn: std::collections::BTreeSet<i32> =
                (0..2000).map(|n| keys(distribution, index, n)).collect();
            assert!(drawn.first() < Some(&10) && drawn.last() > Some(&90), "{distribution} {index}");
            assert!(drawn.last() < Some(&100), "what nobody has inserted is not looked for");
        }
    }
    let sequential: std::collections::BTreeSet<i32> = (0..4)
        .flat_map(|index| (0..25).map(move |n| (index, n)))
        .map(|(i, n)| keys("sequential", i, n))
        .collect();
    assert_eq!(sequential.len(), 100, "all of them go through it once");
}

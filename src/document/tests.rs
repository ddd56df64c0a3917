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
    assert_eq!(template.incs(), whole("incs_per_operation"));
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
    check(&known["operations"], &|n| {
        Draw::operation(seed, n, documents, n, n * template.new_keys(), template.incs())
    });
    check(&known["loaded"], &|key| Draw::loading(seed, key, documents));
}

#[test]
fn a_fixed_key_stands_in_every_key_and_draws_nothing() {
    let compiled = Compiled::new(
        &template(json!({ "_id": { "^Key": "next" }, "a": { "^Key": "zipfian" }, "n": { "^Inc": {} } })),
        10,
    );
    let mut draw = Draw::operation(1, 5, 10, 3, 4, 1);
    assert_eq!(draw.take_new_key(), 14);
    assert_eq!(compiled.document(&mut draw), doc! { "_id": 14, "a": 14, "n": 14 });
    assert_eq!(draw.take_new_key(), 15);
    assert_eq!(compiled.document(&mut draw), doc! { "_id": 15, "a": 15, "n": 15 });
    assert_eq!((draw.next_key, draw.random), (16, Random::for_operation(1, 5)));
    // The document with key 14 would be the same if it were loaded.
    assert_eq!(compiled.document(&mut Draw::loading(1, 14, 20)), doc! { "_id": 14, "a": 14, "n": 14 });
}

#[test]
fn increments_go_on_through_the_renderings_of_an_execution() {
    let compiled =
        Compiled::new(&template(json!([{ "^Inc": { "start": 10, "step": 2 } }, { "^Inc": {} }])), 0);
    let mut draw = Draw::operation(0, 0, 0, 3, 0, 4);
    assert_eq!(compiled.render(&mut draw), Bson::from([34, 13]));
    assert_eq!(compiled.render(&mut draw), Bson::from([38, 15]));
    // However far it goes, it wraps and does not panic.
    let mut draw = Draw::operation(0, 0, u64::MAX, u64::MAX, u64::MAX, u64::MAX);
    assert_eq!(compiled.render(&mut draw), Bson::from([12, 2]));
}

#[test]
fn what_is_no_document_becomes_a_filter_without_matches() {
    let compiled = Compiled::new(&template(json!(5)), 0);
    assert_eq!(compiled.document(&mut Draw::operation(0, 0, 0, 0, 0, 0)), doc! { "": 5 });
}

proptest! {
    #[test]
    fn renderings_repeat_and_stay_below_the_foretold_size(seed: u64, n: u64, documents in 0_u64..1_000_000) {
        let known: Value = serde_json::from_str(include_str!("../../tests/data/draws.json")).unwrap();
        let template = template(known["template"].clone());
        let compiled = Compiled::new(&template, documents);
        let render = || {
            let mut document = compiled.document(&mut Draw::operation(seed, n, documents, n, 0, 3));
            document.insert("now", DateTime::from_millis(0));
            document
        };
        let document = render();
        prop_assert!(document.to_vec().unwrap().len() as u64 <= template.max_bytes());
        prop_assert_eq!(document, render());
    }
}

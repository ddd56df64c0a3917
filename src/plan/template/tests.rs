use bson::{Bson, doc};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(value: Value) -> Template {
    Template::from_json(&value).unwrap_or_else(|errors| panic!("{value}: {errors:?}"))
}

/// The mistakes as text, one a line.
fn mistakes(value: Value) -> String {
    let errors = Template::from_json(&value).expect_err(&value.to_string());
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn generator(value: Value) -> Generator {
    match read(value) {
        Template::Generator(generator) => *generator,
        other => panic!("{other:?}"),
    }
}

#[test]
fn plain_values_become_what_the_server_expects() {
    let template = read(json!({
        "find": "c", "n": 1, "big": 3_000_000_000_i64, "x": 1.0, "b": true, "nothing": null,
        "list": [1, { "$gt": 2 }], "$or": [], "^^x": 1, "^^^y": 2,
    }));
    let constant = template.constant().unwrap();
    let expected = doc! {
        "find": "c", "n": 1_i32, "big": 3_000_000_000_i64, "x": 1.0, "b": true, "nothing": null,
        "list": [1_i32, { "$gt": 2_i32 }], "$or": [], "^x": 1_i32, "^^y": 2_i32,
    };
    assert_eq!(constant, Bson::Document(expected.clone()));
    // In this order, which equality of documents does not look at.
    assert!(template.as_document().unwrap().iter().map(|(key, _)| key).eq(expected.keys()));
    assert!(template.is_document() && !template.is_array());
}

#[test]
fn extended_json_becomes_values_and_must_be_well_formed() {
    let template = read(json!({
        "id": { "$oid": "507f1f77bcf86cd799439011" },
        "date": { "$date": "2026-01-31T12:00:00Z" },
        "uuid": { "$uuid": "73ffd264-44b3-4c69-90e8-e7d1dfc035d4" },
        "time": { "$timestamp": { "t": 1, "i": 4_294_967_295_u32 } },
        "long": { "$numberLong": "5" },
        "code": { "$code": "x", "$scope": { "^^x": 3_000_000_000_i64 } },
        "max": { "$maxKey": 1 },
    }));
    let Some(Bson::Document(value)) = template.constant() else { panic!() };
    assert_eq!(value.get_datetime("date").unwrap().timestamp_millis(), 1_769_860_800_000);
    assert_eq!(value.get("long"), Some(&Bson::Int64(5)));
    assert_eq!(value.get("max"), Some(&Bson::MaxKey));
    let Some(Bson::JavaScriptCodeWithScope(code)) = value.get("code") else { panic!() };
    assert_eq!(code.scope, doc! { "^x": 3_000_000_000_i64 });

    assert_eq!(
        mistakes(json!({ "a": [{ "$oid": "xyz" }], "b": { "$numberLong": "1", "c": 2 } })),
        "a[0]: malformed `$oid`: it is written { \"$oid\" = \"507f1f77bcf86cd799439011\" }\n\
         b: malformed `$numberLong`: it is written { \"$numberLong\" = \"42\" }"
    );
    assert_eq!(
        mistakes(json!({ "$code": "x", "$scope": { "a": { "^Now": {} } } })),
        "$scope: must be a table without generators"
    );
}

#[test]
fn generators_have_short_forms_and_defaults() {
    assert_eq!(generator(json!({ "^Key": "zipfian" })), Generator::Key(KeyDistribution::Zipfian));
    assert_eq!(
        generator(json!({ "^Key": { "distribution": "hotspot", "hot_set": 0.1 } })),
        Generator::Key(KeyDistribution::Hotspot { hot_set: 0.1, hot_operations: 0.8 })
    );
    let Generator::String { length, alphabet } = generator(json!({ "^String": { "max_length": 3 } })) else {
        panic!()
    };
    assert_eq!((length, alphabet.len()), (Length { min: 0, max: 3 }, 62));
    assert_eq!(
        generator(json!({ "^Choose": ["a", 1] })),
        Generator::Choose { from: vec![read(json!("a")), read(json!(1))], weights: vec![] }
    );
    assert_eq!(generator(json!({ "^Inc": {} })), Generator::Inc { start: 0, step: 1 });
    assert_eq!(
        generator(json!({ "^Double": { "min": 0, "max": 2 } })),
        Generator::Double { min: 0.0, max: 2.0 }
    );
    let joined = generator(json!({ "^Join": ["a", { "^Key": "uniform" }] }));
    assert!(
        matches!(joined, Generator::Join { array, separator } if array.len() == 2 && separator.is_empty())
    );
}

#[test]
fn all_mistakes_are_told_at_once_with_what_was_probably_meant() {
    let told = mistakes(json!({
        "a": { "^int": { "min": 0, "max": 1 } },
        "b": { "^Int": { "mni": 0, "max": 1.5 } },
        "c": [{ "^Key": "zipfain" }, { "^Now": 1 }],
        "d": { "^Int": { "min": 0, "max": 1 }, "e": 1 },
        "f": { "^Int": { "min": 2, "max": 1 } },
        "g": { "^Choose": { "from": [1, 2], "weights": [0, 0] } },
        "h": { "^Choose": { "from": [1, 2], "weights": [1] } },
        "i": { "^Join": ["a", 0.5] },
        "j": { "^String": {} },
        "k": 18_446_744_073_709_551_615_u64,
        "l": { "^Key": { "distribution": "uniform", "hot_set": 2 } },
        "m": { "^Wibble": 1 },
        "n\0": 1,
    }));
    assert_eq!(
        told,
        "a.^int: there is no generator `^int`: did you mean `^Int`?\n\
         b.^Int.mni: `^Int` has no field `mni`: did you mean `min`?\n\
         b.^Int: needs `min`\n\
         b.^Int.max: must be a 64-bit integer\n\
         c[0].^Key: \"zipfain\" is no distribution of keys: did you mean `zipfian`?\n\
         c[1].^Now: `^Now` is written { \"^Now\" = {} }\n\
         d: `^Int` is a generator and must be the only key of its table; the literal key is written `^^Int`\n\
         f.^Int: min = 2 is above max = 1\n\
         g.^Choose.weights: some weight must be above 0\n\
         h.^Choose: there are 1 weights for 2 choices\n\
         i.^Join[1]: `^Join` joins strings, integers, booleans and ObjectIds only\n\
         j.^String: needs `length`, or `min_length` and `max_length`\n\
         k: 18446744073709551615 does not fit a signed 64-bit integer\n\
         l.^Key.hot_set: must be a number from 0 to 1\n\
         l.^Key: hot_set and hot_operations belong to the distribution `hotspot` alone\n\
         m.^Wibble: there is no generator `^Wibble`: there are ^Key, ^Int, ^Double, ^String, ^Choose, ^Inc, ^Now, \
         ^ObjectId, ^Bytes, ^Array, ^Join; a literal key is written `^^Wibble`\n\
         n\0: a key cannot contain the character NUL"
    );
}

#[test]
fn counted_generators_stand_only_where_their_number_is_fixed() {
    let template = read(json!({
        "_id": { "^Key": "next" },
        "n": { "^Array": { "of": [{ "^Inc": {} }, { "^Inc": {} }], "length": 3 } },
        "s": { "^Join": ["a", { "^Inc": {} }] },
        "z": { "^Key": "zipfian" },
    }));
    assert_eq!(template.new_keys(), 1);
    assert_eq!(
        mistakes(json!([
            { "^Choose": [1, [{ "^Inc": {} }]] },
            { "^Array": { "of": { "^Key": "next" }, "min_length": 1, "max_length": 2 } },
        ])),
        "[0].^Choose[1][0].^Inc: `^Inc` cannot stand inside a `^Choose`: how many of them a rendering uses has to be \
         fixed\n\
         [1].^Array.of.^Key: `^Key = \"next\"` cannot stand inside an `^Array` of varying length: how many of them a \
         rendering uses has to be fixed"
    );
}

#[test]
fn what_no_document_can_hold_is_refused() {
    assert!(mistakes(json!({ "^Bytes": { "length": 16_777_217 } })).contains("cannot have more than 16 MiB"));
    assert_eq!(
        mistakes(json!({ "a": { "^Array": { "of": { "^String": { "length": 1000 } }, "length": 20_000 } } })),
        "a.^Array: `^Array` can become 20 MiB: a document cannot have more than 16 MiB"
    );
    let string = json!({ "^String": { "length": 9_000_000 } });
    assert_eq!(
        mistakes(json!({ "a": string, "b": string })),
        "the whole of it can become 18 MiB: a document cannot have more than 16 MiB"
    );
    let mut deep = json!(1);
    for _ in 0..150 {
        deep = json!([deep]);
    }
    assert!(mistakes(deep).ends_with("lies more than 100 levels deep, which no server takes"));
}

#[test]
fn choosing_among_documents_is_a_document() {
    assert!(read(json!({ "^Choose": [{ "a": 1 }, { "^Choose": [{}] }] })).is_document());
    assert!(!read(json!({ "^Choose": [{ "a": 1 }, 2] })).is_document());
    assert!(read(json!({ "^Array": { "of": 1, "length": 2 } })).is_array());
    assert!(read(json!({ "^Choose": ["a", { "^Key": "latest" }] })).is_text_like());
}

#[test]
fn plans_carry_canonical_extended_json() {
    let template =
        read(json!({ "_id": { "^Key": "zipfian" }, "n": 1, "x": { "^Double": { "min": 0, "max": 1 } } }));
    assert_eq!(
        serde_json::to_string(&template).unwrap(),
        r#"{"_id":{"^Key":{"distribution":"zipfian"}},"n":{"$numberInt":"1"},"x":{"^Double":{"min":{"$numberDouble":"0.0"},"max":{"$numberDouble":"1.0"}}}}"#
    );
    let error = serde_json::from_str::<Template>(r#"[{"^No": 1}, {"^Int": 3}]"#).unwrap_err().to_string();
    assert!(error.contains("did you mean `^Now`?; [1].^Int: `^Int` is written"), "{error}");
}

fn scalars() -> impl Strategy<Value = Bson> {
    let text = r#"[a-z^$"\\é]{0,6}"#;
    prop_oneof![
        Just(Bson::Null),
        Just(Bson::MinKey),
        Just(Bson::MaxKey),
        Just(Bson::Undefined),
        any::<bool>().prop_map(Bson::Boolean),
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<u64>().prop_map(f64::from_bits).prop_filter("NaN", |x| !x.is_nan()).prop_map(Bson::Double),
        text.prop_map(Bson::String),
        text.prop_map(Bson::Symbol),
        text.prop_map(Bson::JavaScriptCode),
        (text, text, any::<i64>()).prop_map(|(code, key, value)| {
            Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope { code, scope: doc! { key: value } })
        }),
        any::<i64>().prop_map(|millis| Bson::DateTime(bson::DateTime::from_millis(millis))),
        any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(bson::oid::ObjectId::from_bytes(bytes))),
        (any::<u32>(), any::<u32>())
            .prop_map(|(time, increment)| Bson::Timestamp(bson::Timestamp { time, increment })),
        (any::<u8>(), vec(any::<u8>(), 0..9))
            .prop_map(|(subtype, bytes)| Bson::Binary(bson::Binary { subtype: subtype.into(), bytes })),
        "-?[1-9][0-9]{0,20}(\\.[0-9]{1,9})?(E-?[0-9]{1,3})?"
            .prop_map(|d| Bson::Decimal128(d.parse().unwrap())),
        ("[a-z^$.]{0,5}", "i?m?s?x?").prop_map(|(pattern, options)| {
            let [pattern, options] = [pattern, options].map(|text| text.try_into().unwrap());
            Bson::RegularExpression(bson::Regex { pattern, options })
        }),
    ]
}

fn generators(inner: BoxedStrategy<Template>) -> impl Strategy<Value = Generator> {
    let length = (0_u32..50, 0_u32..50).prop_map(|(min, more)| Length { min, max: min + more });
    let text_like = prop_oneof![
        "[a-z]{0,5}".prop_map(|text| Template::Value(Bson::String(text))),
        Just(Template::Generator(Box::new(Generator::ObjectId))),
    ];
    prop_oneof![
        prop_oneof![
            Just(KeyDistribution::Uniform),
            Just(KeyDistribution::Zipfian),
            Just(KeyDistribution::Latest),
            Just(KeyDistribution::Sequential),
            (0.0..=1.0, 0.0..=1.0)
                .prop_map(|(hot_set, hot_operations)| KeyDistribution::Hotspot { hot_set, hot_operations }),
        ]
        .prop_map(Generator::Key),
        (any::<i64>(), any::<i64>()).prop_map(|(a, b)| Generator::Int { min: a.min(b), max: a.max(b) }),
        (-1e300..1e300, 0.0..1e300).prop_map(|(min, more)| Generator::Double { min, max: min + more }),
        (length.clone(), "\\PC{1,9}").prop_map(|(length, alphabet)| Generator::String { length, alphabet }),
        vec((inner.clone(), 1_u32..), 1..4).prop_map(|choices| {
            let (from, weights) = choices.into_iter().unzip();
            Generator::Choose { from, weights }
        }),
        vec(inner.clone(), 1..4).prop_map(|from| Generator::Choose { from, weights: vec![] }),
        Just(Generator::Now),
        length.clone().prop_map(|length| Generator::Bytes { length }),
        (inner, 0_u32..4).prop_map(|(of, n)| Generator::Array { of, length: Length { min: n / 2, max: n } }),
        (vec(text_like, 0..4), ".{0,3}").prop_map(|(array, separator)| Generator::Join { array, separator }),
    ]
}

fn templates() -> impl Strategy<Value = Template> {
    scalars().prop_map(Template::Value).prop_recursive(4, 40, 4, |inner| {
        let key = r"(\^{0,3}|\$set)[a-z.é]{1,3}";
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Template::Array),
            vec((key, inner.clone()), 0..4).prop_map(|mut fields| {
                let mut keys = std::collections::HashSet::new();
                fields.retain(|(key, _)| keys.insert(key.clone()));
                Template::Document(fields)
            }),
            generators(inner.boxed()).prop_map(|generator| Template::Generator(Box::new(generator))),
        ]
    })
}

/// JSON that comes close to templates: their keys in the wrong places, with the wrong values.
fn nearly_templates() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "\\PC{0,3}",
        prop::sample::select(vec![
            "^Key",
            "^Int",
            "^Double",
            "^String",
            "^Choose",
            "^Inc",
            "^Now",
            "^ObjectId",
            "^Bytes",
            "^Array",
            "^Join",
            "^",
            "^^",
            "$oid",
            "$date",
            "$binary",
            "base64",
            "subType",
            "$numberDecimal",
            "$numberDouble",
            "$code",
            "$scope",
            "$timestamp",
            "t",
            "i",
            "$regularExpression",
            "pattern",
            "options",
            "$uuid",
            "$dbPointer",
            "$ref",
            "$id",
            "$minKey",
            "$symbol",
            "$undefined",
            "$numberInt",
            "$numberLong",
            "$maxKey",
            "min",
            "max",
            "length",
            "min_length",
            "max_length",
            "of",
            "from",
            "weights",
            "array",
            "sep",
            "alphabet",
            "distribution",
            "start",
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "\\PC{0,30}".prop_map(Value::from),
        "[-+0-9.eE]{0,45}".prop_map(Value::from),
        "[0-9]{0,6}-[0-9]{1,2}-[0-9]{1,2}T[0-9:.]{0,20}(Z|[+-][0-9:]{0,5})".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key.clone(), inner), 0..3).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn templates_survive_json(template in templates()) {
        let text = serde_json::to_string(&template).unwrap();
        let back: Template = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&back, &template, "{}", text);
        prop_assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }

    #[test]
    fn nothing_panics_and_what_is_read_is_written_as_read(value in nearly_templates()) {
        match Template::from_json(&value) {
            Ok(template) => {
                // By text: a NaN is not equal to itself.
                let json = template.to_json();
                prop_assert_eq!(Template::from_json(&json).unwrap().to_json(), json);
            }
            Err(errors) => prop_assert!(!errors.is_empty()),
        }
    }

    #[test]
    fn no_constant_is_larger_than_foretold(template in templates()) {
        if let Some(Bson::Document(document)) = template.constant() {
            let bytes = document.to_vec().unwrap().len() as u64;
            prop_assert!(bytes <= template.max_bytes());
        }
    }
}

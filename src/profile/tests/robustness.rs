//! No text, however strange, makes reading panic or moves a terminal's cursor.

use proptest::prelude::*;

use super::{any_option, read};
use crate::profile::estimate::{Options, doubts};
use crate::profile::{Overrides, describe, resolve};

/// Texts that come closer to a profile than random characters do.
fn nearly_profiles() -> impl Strategy<Value = String> {
    let bits = prop::sample::select(vec![
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        ",",
        ".",
        "\n",
        "\"",
        "'",
        "\"\"\"",
        "#",
        " ",
        "load",
        "op",
        "data",
        "client",
        "overload",
        "find_one",
        "transaction",
        "statements",
        "filter",
        "update",
        "stages",
        "for",
        "rate",
        "at",
        "weight",
        "staleness",
        "every",
        "thresholds",
        "fail_if",
        "\"op.a.goodput < 1\"",
        "fail_command",
        "a",
        "\"^Key\"",
        "\"$set\"",
        "\"1s\"",
        "1",
        "-1",
        "1.5",
        "inf",
        "0x1f",
        "true",
        "1979-05-27T07:32Z",
        "07:32",
        "é",
        "\u{0}",
        "\r\n",
        "\u{feff}",
        "\u{202e}",
    ]);
    prop::collection::vec(bits, 0..60).prop_map(|bits| bits.concat())
}

/// Whatever a text holds, what is said about it must not move a terminal's cursor or colour.
fn go_all_the_way(text: &str) {
    let said = match read(text) {
        Err(mistakes) => {
            mistakes.render(true);
            mistakes.render(false)
        }
        Ok(profile) => {
            // Overloads that a server could not have on together are refused when the plan is made.
            if let Ok(plan) = resolve(&profile, &Overrides::default(), &any_option) {
                describe(&plan, None, &doubts(&plan, Options::default()));
            }
            profile.warnings.render(false)
        }
    };
    assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
}

#[test]
fn keys_cannot_send_escapes_to_the_terminal() {
    go_all_the_way("\"\\u001b[31m\\t\\r\\n\" = 1\n[op.a.\"\\u001b[1m\"]\n[op.\"\\u0007\".find_one]\n");
    go_all_the_way("[load]\nmodel = \"\\u001b\"\nrate = \"\\u001b\"\n");
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).*") {
        go_all_the_way(&text);
    }

    #[test]
    fn nothing_near_a_profile_panics(text in nearly_profiles()) {
        go_all_the_way(&text);
    }

    /// Sound TOML in which one value, or one key, is another's.
    #[test]
    fn no_misplaced_value_panics(
        line in 0_usize..150,
        value in prop::sample::select(vec![
            "0", "-1", "9223372036854775807", "1.5", "nan", "\"\"", "\"1s\"", "\"unset\"", "true", "[]", "{}", "[[]]", "[{}]",
            "{ a.b = 1 }", "{ \"^Key\" = 1 }", "{ \"$date\" = 1 }", "{ find_one = {} }", "[{ drop = { suffix = [] } }]",
            "07:32:00", "1979-05-27T07:32:00Z", "[1, \"a\"]", "{ \"\" = {} }",
        ]),
        key in prop::option::of(prop::sample::select(vec!["weight", "filter", "update", "\"\"", "a.b", "\"^Int\".min", "for"])),
    ) {
        let text = include_str!("../../../tests/data/every-kind.toml");
        let changed: Vec<String> = text.lines().enumerate().map(|(number, text)| match text.split_once(" = ") {
            Some((old, _)) if number == line => format!("{} = {value}", key.unwrap_or(old)),
            _ => text.to_owned(),
        }).collect();
        go_all_the_way(&changed.join("\n"));
    }

    #[test]
    fn no_damaged_profile_panics(at in 0_usize..4000, len in 0_usize..40, new in ".{0,3}") {
        let text: Vec<char> = include_str!("../../../tests/data/every-kind.toml").chars().collect();
        let end = (at + len).min(text.len());
        let damaged: String = text[..at.min(end)].iter().collect::<String>() + &new + &text[end..].iter().collect::<String>();
        go_all_the_way(&damaged);
    }
}

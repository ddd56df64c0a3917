//! Whole profiles, good ones and bad ones, as people meet them.

mod clients;
mod flow;
mod mistakes;
mod robustness;
mod thresholds;

use insta::assert_snapshot;

use super::*;
use crate::plan::Plan;

fn any_option(name: &str, _: Option<&str>) -> Result<String, String> {
    Ok(name.to_owned())
}

fn read(text: &str) -> Result<Profile, Diagnostics> {
    let source = Source { name: "test".to_owned(), shown: "test.toml".to_owned(), text: text.to_owned() };
    Profile::read(source, &any_option)
}

/// What is said about a text: mistakes, or else warnings.
fn told(text: &str) -> String {
    read(text).map_or_else(|mistakes| mistakes.render(false), |profile| profile.warnings.render(false))
}

fn plan(text: &str, overrides: &Overrides) -> Plan {
    resolve(&read(text).unwrap(), overrides, &any_option).unwrap()
}

const PING: &str = "[op.ping.run_command]\ncommand = { ping = 1 }\n";

#[test]
fn shipped_profiles_resolve_without_a_doubt_and_survive_json() {
    for (name, description) in shipped::list() {
        let profile = Profile::open(name, &any_option).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(profile.warnings.render(false), "", "{name}");
        assert!(description.len() > 20, "{name}");
        let plan = resolve(&profile, &Overrides::default(), &any_option).unwrap();
        assert_eq!(estimate::doubts(&plan, estimate::Options::default()), Vec::<String>::new(), "{name}");
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan, "{name}");
    }
}

#[test]
fn every_kind_is_read_and_survives_json() {
    let text = include_str!("../../tests/data/every-kind.toml");
    assert_eq!(told(text), "");
    let plan = plan(text, &Overrides::default());
    let kinds: Vec<&str> = plan.operations.iter().map(|op| op.action.kind()).collect();
    assert_eq!(kinds, action::KINDS);
    let json = serde_json::to_string_pretty(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    assert_eq!(plan.overloads[0].name, "fail_command");
}

#[test]
fn options_are_text_and_checked() {
    let check = |name: &str, _: Option<&str>| match name {
        "maxPoolSize" | "compressors" | "tls" => Ok(name.to_owned()),
        "ssl" => Ok("tls".to_owned()),
        _ => Err(format!("there is no option `{name}`")),
    };
    let read = |text: &str| {
        let source = Source { name: "test".to_owned(), shown: "test.toml".to_owned(), text: text.to_owned() };
        Profile::read(source, &check)
    };
    let profile = read(&format!(
        "[client]\nmaxPoolSize = 0x10\ncompressors = [\"zstd\", \"zlib\"]\ntls = \"unset\"\n{PING}"
    ))
    .unwrap();
    let values: Vec<_> = profile.client.iter().map(|s| s.value.as_deref()).collect();
    assert_eq!(values, [Some("16"), Some("zstd,zlib"), None]);
    let twice = read(&format!("[client]\nssl = true\ntls = false\n{PING}")).unwrap_err();
    assert_snapshot!(twice, @r"
    error: `tls` is the same option as `ssl`
     --> test.toml:3:1
      |
    3 | tls = false
      | ^^^^^^^^^^^
    ");
    assert_eq!(read(&format!("[client]\nssl = true\n{PING}")).unwrap().client[0].name, "tls");
    let mistakes = read(&format!("[client]\nmaxPoolsize = 1.5\nnope = 1\nTLS = true\n{PING}")).unwrap_err();
    assert_snapshot!(mistakes, @r"
    error: `client.maxPoolsize` must be a text, a whole number, true, false or a list of those, not a number
     --> test.toml:2:15
      |
    2 | maxPoolsize = 1.5
      |               ^^^

    error: there is no option `nope`
     --> test.toml:3:1
      |
    3 | nope = 1
      | ^^^^^^^^

    error: there is no option `TLS`
     --> test.toml:4:1
      |
    4 | TLS = true
      | ^^^^^^^^^^
    ");
}

#[test]
fn secrets_are_not_shown_with_their_line() {
    let check = |name: &str, value: Option<&str>| match name {
        "proxyPassword" => Err("a secret belongs into the connection string".to_owned()),
        _ => Err(format!("`{name}` cannot be '{}'", value.unwrap_or_default())),
    };
    let text = "[client]\nproxyPassword = \"hunter2é\"\nPROXYPASSWORD = \"hunter3\"\nauthMechanismProperties = { T = \"hunter4\" }\nappName = \"me\"\n";
    let source =
        Source { name: "test".to_owned(), shown: "test.toml".to_owned(), text: format!("{text}{PING}") };
    assert_snapshot!(Profile::read(source, &check).unwrap_err(), @r#"
    error: a secret belongs into the connection string
     --> test.toml:2:1
      |
    2 | proxyPassword = ***
      | ^^^^^^^^^^^^^^^^^^^

    error: `PROXYPASSWORD` cannot be 'hunter3'
     --> test.toml:3:1
      |
    3 | PROXYPASSWORD = "hunter3"
      | ^^^^^^^^^^^^^^^^^^^^^^^^^

    error: `client.authMechanismProperties` must be a text, a whole number, true, false or a list of those, not a table
     --> test.toml:4:27
      |
    4 | authMechanismProperties = { T = *** }
      |                           ^^^^^^^^^^^

    error: `appName` cannot be 'me'
     --> test.toml:5:1
      |
    5 | appName = "me"
      | ^^^^^^^^^^^^^^
    "#);
}

#[test]
fn a_connection_string_has_no_place_in_a_profile() {
    assert_snapshot!(told(&format!("uri = \"mongodb://me:secret@host\"\n{PING}")), @r#"
    error: a profile holds no connection string
     --> test.toml:1:1
      |
    1 | uri = "mongodb://***@host"
      | ^^^
      |
      = help: give it with --uri, --uri-file or $OVERDRIVE_URI
    "#);
    assert!(!told("uri = \"mongodb://me:secret@host").contains("secret"));
    let key = format!("{PING}[client]\n\"mongodb://me:secret@host\" = 1\n");
    let source = Source { name: "test".to_owned(), shown: "test.toml".to_owned(), text: key };
    assert_snapshot!(Profile::read(source, &crate::client::options::check).unwrap_err(), @r#"
    error: unknown option `mongodb://***@host`; the Rust driver has none that is spelt alike
     --> test.toml:4:1
      |
    4 | "mongodb://***@host" = 1
      | ^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn tags_add_up_within_one_source() {
    let text = format!("[client]\nreadPreferenceTags = [\"dc:ny,rack:1\", \"\"]\n{PING}");
    let tags = |sets: &[&str]| {
        let sets = sets.iter().map(|tag| ("readPreferenceTags".to_owned(), (*tag).to_owned())).collect();
        let plan = plan(&text, &Overrides { sets, ..Overrides::default() });
        plan.client.into_iter().filter_map(|setting| setting.value).collect::<Vec<_>>()
    };
    assert_eq!(tags(&[]), ["dc:ny,rack:1", ""]);
    assert_eq!(tags(&["dc:la", "dc:sf"]), ["dc:la", "dc:sf"]);
}

#[test]
fn a_mark_at_the_start_is_no_mistake() {
    assert_eq!(told(&format!("\u{feff}{PING}")), "");
    assert_eq!(told(&PING.replace('\n', "\r\n")), "");
}

#[test]
fn colour_comes_only_when_asked_for() {
    let mistakes = read("x = 1").unwrap_err();
    assert!(!mistakes.render(false).contains('\x1b'));
    assert!(mistakes.render(true).contains('\x1b'));
}

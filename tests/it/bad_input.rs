//! What people get wrong: told with the thing, the place and the next step, before anything is started or written.

use std::fs;
use std::path::Path;

use crate::shared_lab;
use crate::support::{Finished, Place, finish, overdrive};

const PROFILE: &str = r#"
[data]
documents = 10
[load]
rate = "10/s"
warmup = "0s"
duration = "1s"
[op.find.find_one]
filter = { _id = { "^Key" = "uniform" } }
"#;

/// A password, as it is and as a connection string has it.
const SECRET: [&str; 2] = ["p@ss/w:rd", "p%40ss%2Fw%3Ard"];

/// Runs a profile with arguments that are wrong: exit code 2, every part in the message, nothing left behind.
#[track_caller]
fn refused(profile: impl AsRef<[u8]>, args: &[&str], parts: &[&str]) -> Finished {
    let place = Place::new(profile);
    let finished = finish(&mut place.run(args));
    finished.assert_code(2);
    for part in parts {
        assert!(finished.stderr.contains(part), "no '{part}' in: {}", finished.stderr);
    }
    assert!(finished.stdout.is_empty(), "{}", finished.stdout);
    assert!(!finished.stderr.contains("Starting a lab"), "a lab for nothing: {}", finished.stderr);
    assert!(!place.path().join("results").exists(), "results of nothing");
    finished
}

#[test]
fn times_and_rates_that_cannot_be() {
    for (value, part) in [
        ("0", "longer than 0"),
        ("0s", "longer than 0"),
        ("-1s", "is negative"),
        ("10", "write 10s"),
        ("584y", "write one like 250ms, 10s or 1m30s"),
        ("9999999h", "longer than a year"),
        ("", "length of time"),
    ] {
        refused(PROFILE, &[&format!("--duration={value}")], &["duration", part]);
        let text = PROFILE.replace("duration = \"1s\"", &format!("duration = \"{value}\""));
        refused(text, &[], &["profile.toml:7", "duration", part]);
    }
    for (value, part) in [("0", "above 0"), ("-5/s", "above 0"), ("5/fortnight", "500/s"), ("1e9", "at most")]
    {
        refused(PROFILE, &[&format!("--rate={value}")], &["--rate", part]);
        let text = PROFILE.replace("\"10/s\"", &format!("\"{value}\""));
        refused(text, &[], &["profile.toml:5", "rate", part]);
    }
    refused(PROFILE, &["--workers", "0"], &["workers must be from 1"]);
    for option in ["--workers", "--rate", "--seed"] {
        let finished = refused(PROFILE, &[option, "-1"], &[option, "-1"]);
        assert!(!finished.stderr.contains("tip:"), "it is no other argument: {}", finished.stderr);
    }
    refused(PROFILE, &["--set", "op.find.weight=0.5"], &["whole number", "scale all weights"]);
    refused(PROFILE, &["--rate", "5", "--workers", "5"], &["--workers", "--rate"]);
}

#[test]
fn profiles_that_say_nothing_that_can_be_done() {
    let op = "[op.find.find_one]";
    let with = |more: &str| format!("{PROFILE}{more}\n");
    let idle = with("weight = 0");
    refused(idle, &[], &["profile.toml:8", "weight 0", "above 0"]);
    refused(PROFILE, &["--set", "op.find.weight=0"], &["weight 0"]);
    refused(PROFILE.replace(op, "[op.all.find_one]"), &[], &["profile.toml:8", "`all`"]);
    refused(PROFILE.replace(op, "[op.find.fnd_one]"), &[], &["`fnd_one`", "did you mean `find_one`?"]);
    refused(PROFILE.replace("^Key", "^Kye"), &[], &["`^Kye`", "did you mean `^Key`?"]);
    refused(PROFILE.replace("documents", "documnts"), &[], &["`documnts`", "did you mean `documents`?"]);
    refused(with("[load2]"), &[], &["`load2`", "did you mean `load`?"]);
    refused(with("[client]\nmaxPolSize = 3"), &[], &["`maxPolSize`", "did you mean `maxPoolSize`?"]);
    let number = PROFILE.replace("{ _id = { \"^Key\" = \"uniform\" } }", "3");
    refused(number, &[], &["profile.toml:9", "filter", "must be a document", "{ field = value }"]);
    // All of them at once, not the first.
    let several = PROFILE.replace("documents", "documnts").replace(op, "[op.find.fnd_one]");
    refused(several, &[], &["documnts", "fnd_one"]);
}

#[test]
fn profiles_that_are_no_text() {
    refused("", &[], &["profile.toml is empty"]);
    refused(b"# caf\xe9\n", &[], &["profile.toml is not UTF-8", "line 1"]);
    refused("[load\n", &[], &["profile.toml:1", "TOML"]);
    let place = Place::new("");
    for (wanted, part) in [(".", "directory"), ("none.toml", "no profile"), ("qickstart", "`quickstart`")] {
        for subcommand in ["run", "check"] {
            let finished = finish(overdrive([subcommand, wanted]).current_dir(place.path()));
            finished.assert_code(2);
            assert!(finished.stderr.contains(part), "{}", finished.stderr);
        }
    }
}

#[test]
fn options_and_flags_that_do_not_exist() {
    refused(PROFILE, &["--set", "nonsense"], &["--set", "KEY=VALUE"]);
    refused(PROFILE, &["--set", "=5"], &["--set", "KEY=VALUE"]);
    refused(PROFILE, &["--set", "maxAdaptiveRetry=5"], &["--set", "did you mean `maxAdaptiveRetries`?"]);
    refused(PROFILE, &["--set", "op.fnd.weight=5"], &["--set", "did you mean `op.find.weight`?"]);
    refused(PROFILE, &["--set", "rat=5"], &["--set", "did you mean `rate`?"]);
    refused(PROFILE, &["--set", "load.warmup=soon"], &["--set", "soon"]);
    refused(PROFILE, &["--durration", "5s"], &["--durration", "--duration"]);
    refused(PROFILE, &["--allow-faults", "fail_comand"], &["fail_comand", "'fail_command'"]);
    refused(PROFILE, &["more.toml"], &["more.toml"]);
}

/// A release build of the driver does not back off from there on.
#[test]
fn more_retries_than_the_driver_can_count() {
    if overdrive::client::version::DRIVER_VERSION.starts_with("3.9.") {
        refused(
            PROFILE,
            &["--set", "maxAdaptiveRetries=32"],
            &["maxAdaptiveRetries=32", "--set", "31 or less"],
        );
    }
}

#[test]
fn connection_strings_are_told_without_their_secrets() {
    let uri = |uri: &str, parts: &[&str]| {
        let finished = refused(PROFILE, &["--uri", uri], parts);
        assert!(!finished.stderr.contains("s3cret"), "{}", finished.stderr);
        finished
    };
    uri("mongodb://u:s3cret?x@h", &["%3F"]);
    uri("mongodb://u:s3cret%a€@h", &["password", "%25"]);
    uri("mongodb://u:s3cret:more@h", &["password", "%3A"]);
    uri("mongodb://u:s3cret@h/?w=1&w=2", &["`w`", "more than once"]);
    uri("mongodb://h/?tls=false&tlsCAFile=/nowhere", &["`tls=false`", "`tlsCAFile`"]);
    uri("mongodb://u:s3cret@h/?tls=true&tlsCAFile=/nowhere.pem", &["`tlsCAFile`", "'/nowhere.pem'", "PEM"]);
    uri("mongodb://u:s3cret@h/?maxPolSize=3", &["maxPolSize", "did you mean `maxPoolSize`?"]);
    uri("postgres://u:s3cret@h", &["mongodb://"]);
    uri("", &["mongodb://"]);
}

/// Where people put a connection string first.
#[test]
fn a_connection_string_in_the_wrong_place_keeps_its_secrets() {
    let uri = "mongodb://u:s3cret=x@h/?w=1";
    let places: [&[&str]; 15] = [
        &["run", uri],
        &["check", uri],
        &["run", "--label", uri],
        &["run", "--out", uri],
        &["run", "--mongod", uri],
        &["lab", "--mongod", uri],
        &["run", "--uri-file", uri],
        &["gate", "--upstream", uri],
        &["gate", "--upstream", "u:s3cret@h:27017"],
        &["gate", "--upstream", "h:1", "--listen", uri],
        &["run", "mixed", uri],
        &["run", "--set", uri],
        &["run", "--duration", uri],
        &["lab", uri],
        &[uri],
    ];
    for args in places {
        let finished = finish(&mut overdrive(args));
        finished.assert_code(2);
        assert!(!finished.stderr.contains("s3cret"), "{args:?}: {}", finished.stderr);
    }
    for args in &places[..2] {
        let finished = finish(&mut overdrive(*args));
        assert!(finished.stderr.contains("--uri"), "{}", finished.stderr);
    }
    refused(format!("uri = \"{uri}\"\n{PROFILE}"), &[], &["profile.toml:1", "--uri-file", "$OVERDRIVE_URI"]);
}

#[test]
fn a_server_program_that_cannot_be() {
    refused(PROFILE, &["--mongod", "/no/such/mongod"], &["--mongod", "/no/such/mongod"]);
    refused(PROFILE, &["--mongod", "/bin/true"], &["--mongod", "/bin/true is no mongod"]);
    refused(PROFILE, &["--mongod", "/bin/true", "--uri", "mongodb://h"], &["--mongod", "--uri", "leave one"]);
    let place = Place::new(PROFILE);
    let beside_uri = |args: &[&str], key: &str, value: &str| finish(place.run(args).env(key, value));
    let finished = beside_uri(&["--dry-run"], "OVERDRIVE_MONGOD", "/bin/true");
    assert!(finished.assert_code(2).stderr.contains("$OVERDRIVE_MONGOD"), "{}", finished.stderr);
    // It is for any lab there may be, and this run has none.
    beside_uri(&["--dry-run", "--uri", "mongodb://127.0.0.1:1"], "OVERDRIVE_MONGOD", "/bin/true")
        .assert_code(0);
    beside_uri(&["--mongod", "/bin/true"], "OVERDRIVE_URI", "mongodb://127.0.0.1:1").assert_code(2);
    let finished = finish(&mut overdrive(["lab", "--mongod", "/no/such/mongod"]));
    assert!(finished.assert_code(2).stderr.contains("/no/such/mongod"), "{}", finished.stderr);
}

/// A dry run refuses what the run would, as far as that needs no servers, and tells where it would go.
#[test]
fn a_dry_run_is_as_strict_as_the_run() {
    let dry = |profile: &str, args: &[&str]| {
        let place = Place::new(profile);
        finish(&mut place.run(&[&["--dry-run"], args].concat()))
    };
    let shed = format!("{PROFILE}[[overload]]\nat = \"0s\"\nfor = \"1s\"\nfail_command = {{}}\n");
    let uri = format!("mongodb://me:{}@db.example/?maxPoolSize=7&readPreference=nearest", SECRET[1]);
    let refused = dry(&shed, &["--uri", &uri]);
    assert!(refused.assert_code(2).stderr.contains("--allow-faults=fail_command"), "{}", refused.stderr);
    let processes = shed.replace("fail_command", "kill");
    let refused = dry(&processes, &["--uri", &uri, "--allow-faults=kill"]);
    assert!(refused.assert_code(2).stderr.contains("takes the lab"), "{}", refused.stderr);

    let told = dry(&shed, &["--uri", &uri, "--allow-faults=fail_command"]);
    for part in ["db.example", "--yes", "maxPoolSize = 7  (from URI)", "readPreference = nearest  (from URI)"]
    {
        assert!(told.assert_code(0).stdout.contains(part), "no '{part}' in {}", told.stdout);
    }
    assert!(
        !told.stdout.contains("me:") && !told.stdout.contains("maxPoolSize is not set"),
        "{}",
        told.stdout
    );
    assert!(dry(PROFILE, &[]).assert_code(0).stdout.contains("a lab"));

    // An overload that is never on needs no leave, and is told.
    let late = shed.replace("at = \"0s\"", "at = \"5s\"");
    let told = dry(&late, &["--uri", "mongodb://127.0.0.1:1"]);
    assert!(told.assert_code(0).stdout.contains("fail_command is never on"), "{}", told.stdout);
}

#[test]
fn uri_files_and_the_environment() {
    refused(PROFILE, &["--uri-file", "/no/such/file"], &["--uri-file", "/no/such/file"]);
    refused(PROFILE, &["--uri-file", "/"], &["--uri-file", "directory"]);
    refused(PROFILE, &["--uri-file", "x", "--uri", "mongodb://h"], &["--uri-file", "--uri"]);
    let place = Place::new(PROFILE);
    fs::write(place.path().join("uri"), "mongodb://h/?maxPolSize=1\n").unwrap();
    // What is on the command line goes before the environment.
    let mut command = place.run(&["--uri-file", "uri", "--dry-run"]);
    let finished = finish(command.env("OVERDRIVE_URI", "mongodb://h/?maxStalenes=1"));
    assert!(finished.assert_code(2).stderr.contains("maxPolSize"), "{}", finished.stderr);
    let mut command = place.run(&["--uri", "mongodb://h/?maxPolSize=1", "--dry-run"]);
    let finished = finish(command.env("OVERDRIVE_URI", "mongodb://h/?maxStalenes=1"));
    assert!(finished.assert_code(2).stderr.contains("maxPolSize"), "{}", finished.stderr);
    let finished = finish(place.run(&["--dry-run"]).env("OVERDRIVE_URI", "mongodb://h/?maxStalenes=1"));
    assert!(finished.assert_code(2).stderr.contains("maxStalenes"), "{}", finished.stderr);
    let finished = finish(place.run(&["--dry-run"]).env("OVERDRIVE_URI", ""));
    finished.assert_code(0);
}

#[test]
fn a_refused_password_appears_nowhere() {
    let lab = shared_lab();
    let place = Place::new(PROFILE);
    let uri = lab.uri.replace("mongodb://", &format!("mongodb://me:{}@", SECRET[1]));
    let finished = finish(&mut place.run(&["--uri", &uri]));
    finished.assert_code(1);
    assert!(finished.stderr.contains("Authentication failed"), "{}", finished.stderr);
    assert!(finished.stderr.contains("mongodb://me:***@127.0.0.1"), "{}", finished.stderr);
    assert_no_secret(&finished, place.path());
    assert_eq!(place.runs(), Vec::<std::path::PathBuf>::new());

    // From a file, the process list has none either; here nobody answers.
    let uri = format!("mongodb://me:{}@127.0.0.1:1/?serverSelectionTimeoutMS=500", SECRET[1]);
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::write(elsewhere.path(), uri).unwrap();
    let finished = finish(&mut place.run(&["--uri-file", elsewhere.path().to_str().unwrap()]));
    finished.assert_code(1);
    assert_no_secret(&finished, place.path());
}

fn assert_no_secret(finished: &Finished, files: &Path) {
    for secret in SECRET {
        assert!(!finished.stdout.contains(secret) && !finished.stderr.contains(secret), "{finished:?}");
        assert_absent(secret, files);
    }
}

fn assert_absent(secret: &str, directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_absent(secret, &path);
        } else {
            let text = fs::read(&path).unwrap();
            let found = text.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{} holds the password", path.display());
        }
    }
}

#[test]
fn help_is_there_and_true() {
    let help = |args: &[&str]| {
        let finished = finish(&mut overdrive(args));
        assert!(finished.assert_code(0).stderr.is_empty(), "{}", finished.stderr);
        finished.stdout
    };
    let top = help(&["--help"]);
    assert!(top.contains("Exit codes:") && !top.contains("keeper"), "{top}");
    let commands = [
        "run",
        "check",
        "simulate",
        "profiles",
        "calibrate",
        "lab",
        "compare",
        "report",
        "export",
        "merge",
        "completions",
        "man",
        "verify",
        "drain",
        "driver",
    ];
    for subcommand in commands {
        let text = help(&[subcommand, "--help"]);
        assert!(top.contains(subcommand) && text.contains("Usage:"), "{text}");
        // What help speaks of exists: options by their own help, variables in the program.
        for word in text.split(|c: char| c.is_whitespace() || "`,;:()[]".contains(c)) {
            if let Some(option) = word.strip_prefix("--").filter(|word| !word.is_empty()) {
                // Alone, before its value, or before one that may be left out.
                let shown = [" ", "\n", "[="].map(|end| format!("--{option}{end}"));
                assert!(shown.iter().any(|shown| text.contains(shown)), "{word}");
            }
        }
    }
    // Every example runs as it is printed, as far as can be had without servers.
    let place = Place::new(PROFILE);
    fs::copy(place.path().join("profile.toml"), place.path().join("my.toml")).unwrap();
    let examples: Vec<&str> = top.lines().filter_map(|line| line.trim().strip_prefix("overdrive ")).collect();
    assert!(examples.len() >= 5, "{top}");
    for example in examples {
        // Words about it come after two spaces; quotes are the shell's.
        let words = example.split("  ").next().unwrap().split(' ');
        let mut args: Vec<&str> = words.map(|word| word.trim_matches('\'')).collect();
        match args[0] {
            "run" => args.push("--dry-run"),
            "calibrate" => args.extend(["--duration", "500ms"]),
            "simulate" => args.extend(["--duration", "1s", "--out", "simulated"]),
            // They take runs, which nobody has made here, or minutes.
            "compare" | "report" | "merge" | "verify" => continue,
            _ => {}
        }
        let mut command = overdrive(args);
        // What an example keeps for later runs is none of the other tests' business.
        command.current_dir(place.path()).env("XDG_CACHE_HOME", place.path());
        finish(&mut command).assert_code(0);
    }
    assert!(!place.path().join("results").exists());
}

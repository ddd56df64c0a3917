use proptest::prelude::*;

use super::*;

fn uri(text: &str) -> Uri {
    Uri::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// All messages of a text that must not parse.
fn error(text: &str) -> String {
    match Uri::parse(text) {
        Ok(uri) => panic!("{uri} was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_string_is_taken_apart_and_put_together() {
    let uri = uri(
        " mongodb://u:p%40ss@H1.example:1,[::1]:2,%2Ftmp%2Fm.sock/db%2Dx?MAXPOOLSIZE=7&ssl=true&readPreference=nearest\
         &readPreferenceTags=dc:ny&readPreferenceTags=&appName=a%20b%26c\n",
    );
    assert_eq!(
        uri.expose(),
        "mongodb://u:p%40ss@H1.example:1,[::1]:2,%2Ftmp%2Fm.sock/db%2Dx?maxPoolSize=7&tls=true&readPreference=nearest\
         &readPreferenceTags=dc:ny&readPreferenceTags=&appName=a%20b%26c"
    );
    assert_eq!(uri.hosts(), ["H1.example:1", "[::1]:2", "%2Ftmp%2Fm.sock"]);
    assert_eq!(uri.database().as_deref(), Some("db-x"));
    assert_eq!(uri.option("appname").as_deref(), Some("a b&c"));
    assert_eq!(uri.option("SSL").as_deref(), Some("true"));
    assert_eq!(Uri::parse(uri.expose()), Ok(uri));
}

#[test]
fn nothing_printed_holds_a_secret() {
    let uri = uri("mongodb://u:p%40ss%2Fw%3Ard@127.0.0.1:1/?tlsCertificateKeyFilePassword=hu%26sh\
         &authMechanismProperties=SERVICE_NAME:x,AWS_SESSION_TOKEN:t0ken%3D");
    let shown = "mongodb://u:***@127.0.0.1:1/?tlsCertificateKeyFilePassword=***\
                 &authMechanismProperties=SERVICE_NAME:x,AWS_SESSION_TOKEN:***";
    assert_eq!(uri.to_string(), shown);
    assert_eq!(format!("{uri:?}"), format!("Uri({shown})"));
    let option = |name| uri.option(name).unwrap();
    assert_eq!(option("tlsCertificateKeyFilePassword"), "***");
    assert_eq!(option("authMechanismProperties"), "SERVICE_NAME:x,AWS_SESSION_TOKEN:***");
    assert_eq!(uri.redact(r"u:p%40ss%2Fw%3Ard p@ss/w:rd! t0ken= t0ken%3D 'hu&sh'"), "*** ***! *** *** '***'");
}

#[test]
fn redaction_knows_how_programs_print_a_password() {
    let uri = uri("mongodb://u:a-%22b%0A@h");
    for printed in ["a-%22b%0A", "a-\"b\n", "a%2D%22b%0A", r#"a-\"b\n"#] {
        assert_eq!(uri.redact(&format!("<{printed}>")), "<***>");
    }
    assert_eq!(uri.redact("u at h"), "u at h");
}

#[test]
fn mistakes_say_what_where_and_what_to_do() {
    insta::assert_snapshot!(error("postgres://u:s3cret@h"), @"connection string: must begin with mongodb:// or mongodb+srv://");
    insta::assert_snapshot!(error("mongodb://u:s3cret?x@h"), @"connection string: there is an `@` after the first `?`; a `?` in user name or password must be written %3F, and an `@` in an option's value %40");
    insta::assert_snapshot!(error("mongodb://u:s3/cret@h"), @"connection string: the password holds one of `: / ? # [ ] @`; write them %3A %2F %3F %23 %5B %5D %40");
    insta::assert_snapshot!(error("mongodb://u:s3cret%a€@h"), @"connection string: the password holds a `%` without two hexadecimal digits after it; write a literal % as %25");
    insta::assert_snapshot!(error("mongodb://u:s3cret%ff@h"), @"connection string: the password holds escapes (%XX) that are not UTF-8; encode each character as its UTF-8 bytes");
    insta::assert_snapshot!(error("mongodb://u:s3cret"), @"connection string: host 1 of 1 needs a port from 1 to 65535 after its `:` (an IPv6 address must stand in [ ]; in `user:password@host` the `@` must not be missing, and `/ ? # @ :` within the password must be escaped as %XX)");
    insta::assert_snapshot!(error("mongodb://u:p?s3cret=1"), @"connection string: host 1 of 1 needs a port from 1 to 65535 after its `:` (an IPv6 address must stand in [ ]; in `user:password@host` the `@` must not be missing, and `/ ? # @ :` within the password must be escaped as %XX)");
    insta::assert_snapshot!(error("mongodb://u:s3cret@h/?s3cret=1"), @"connection string: option 1: unknown, and not repeated here because it may be part of a secret; a `&` within a value is written %26");
    insta::assert_snapshot!(error("mongodb://:s3cret@h,,b:99999/a b"), @r##"
connection string: the user name before the `@` is empty; write user:password@ or leave out the `@`
connection string: host 2 of 3 is empty; write name:port
connection string: host 3 of 3 needs a port from 1 to 65535 after its `:` (an IPv6 address must stand in [ ]; in `user:password@host` the `@` must not be missing, and `/ ? # @ :` within the password must be escaped as %XX)
connection string: the database name (after the hosts' `/`) holds one of `/ \ " $` or a space, which MongoDB does not allow; a `/` within the password is written %2F
"##);
    insta::assert_snapshot!(error("mongodb:///"), @"connection string: there is no host; write mongodb://host:port/");
    insta::assert_snapshot!(error("mongodb+srv://a.example:1"), @"connection string: mongodb+srv:// takes a name without a port; DNS gives the ports");
    insta::assert_snapshot!(error("mongodb+srv://a.example/?directConnection=true"), @"connection string: `directConnection=true` needs a host, but mongodb+srv:// leaves the hosts to DNS; write mongodb://host:port/");
    insta::assert_snapshot!(error("mongodb://h/?maxPoolSize=1&MaxPoolSize=1&maxpool=3&w&retryReads=ja&timeoutMS=1"), @r##"
connection string: option 2: `maxPoolSize` is there more than once; keep one of them
connection string: option 3: unknown option `maxpool`; did you mean `maxPoolSize`?
connection string: option 4: has no `=`; write name=value, and a `&` within a value as %26
connection string: option 5: `retryReads` must be true or false, not `ja`
connection string: option 6: `timeoutMS` cannot be used: the Rust driver has no such timeout (its parser refuses the option); leave it out. What can be bounded is the search for a server (`serverSelectionTimeoutMS`), connecting (`connectTimeoutMS`), and, by `maxTimeMS` in a run_command, a command's time on the server
"##);
    insta::assert_snapshot!(error("mongodb://h/?tls=true&ssl=false"), @"connection string: option 2: `tls` and `ssl` are the same option, but their values differ; keep one of them");
    insta::assert_snapshot!(error("mongodb://h/?tlsCAFile=ca.pem&ssl=false"), @"connection string: `tls=false` and `tlsCAFile` exclude each other; take one of them away");
    insta::assert_snapshot!(error("mongodb://h/?tlsCertificateKeyFilePassword=hu&sh=1&maxPoolSize=ten"), @r##"
connection string: option 2: unknown, and not repeated here because it may be part of a secret; a `&` within a value is written %26
connection string: option 3: `maxPoolSize` must be an integer from 1 to 4294967295
"##);
    insta::assert_snapshot!(error("mongodb://h/?readPreferenceTags=a:b&w=0&journal=true&appName=%zz"), @"connection string: option 4: the value of `appName` holds a `%` without two hexadecimal digits after it; write a literal % as %25");
    insta::assert_snapshot!(error("mongodb://a,b/?directConnection=true&loadBalanced=true&readPreferenceTags=a:b&w=0&journal=true"), @r##"
connection string: `directConnection=true` and `loadBalanced=true` exclude each other; take one of them away
connection string: `directConnection=true` allows one host, but there are 2; keep one of them
connection string: `loadBalanced=true` allows one host, but there are 2; keep one of them
connection string: `readPreferenceTags` needs a `readPreference` other than primary beside it
connection string: `w=0` and `journal=true` exclude each other; take one of them away
"##);
    insta::assert_snapshot!(error("mongodb://h/?authMechanism=PLAIN"), @"connection string: `authMechanism=PLAIN` needs a user name before the hosts (user:password@)");
}

#[test]
fn agreeing_spellings_of_tls_are_one_option() {
    let uri = uri("mongodb://h/?tls=true&ssl=true");
    assert_eq!(uri.expose(), "mongodb://h/?tls=true");
}

#[test]
fn only_this_machine_is_loopback() {
    assert!(uri("mongodb://localhost,127.0.0.2:1,[::1]/").is_loopback());
    assert!(!uri("mongodb://localhost,db.example/").is_loopback());
    assert!(!uri("mongodb+srv://localhost/").is_loopback());
}

#[test]
fn control_connections_keep_who_and_how_and_drop_the_experiment() {
    let measured = uri(
        "mongodb+srv://u:p@c.example.com/db?appName=x&authSource=admin&tlsCAFile=ca.pem&maxPoolSize=500&retryReads=false\
         &maxAdaptiveRetries=9&readPreference=nearest&maxStalenessSeconds=90&replicaSet=rs&connectTimeoutMS=1",
    );
    assert_eq!(
        measured.control().expose(),
        "mongodb+srv://u:p@c.example.com/db?authSource=admin&tlsCAFile=ca.pem&replicaSet=rs&appName=overdrive-control"
    );
    assert_eq!(
        measured.finding().expose(),
        "mongodb+srv://u:p@c.example.com/db?authSource=admin&tlsCAFile=ca.pem&replicaSet=rs&appName=overdrive-control\
         &connectTimeoutMS=1"
    );
    assert_eq!(
        measured.with_direct("::1:27018").expose(),
        "mongodb://u:p@[::1]:27018/db?authSource=admin&tlsCAFile=ca.pem&appName=overdrive-control&directConnection=true\
         &tls=true"
    );
    let plain = uri("mongodb://u@a,b/?directConnection=false&loadBalanced=false");
    assert_eq!(
        plain.with_auth_source("x y").with_direct("b:1").expose(),
        "mongodb://u@b:1/?authSource=x%20y&appName=overdrive-control&directConnection=true"
    );
    // An address can become nothing else, whoever sent it.
    let odd = plain.with_direct("evil@h/?tls=false");
    assert_eq!(odd.hosts(), ["evil%40h%2F%3Ftls%3Dfalse"]);
}

/// Texts that are nearly connection strings, with the password somewhere in them.
fn nearly(secret: &'static str) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(secret.to_owned()),
        Just("mongodb://".to_owned()),
        Just("mongodb+srv://".to_owned()),
        prop::sample::select(vec![
            ":",
            "@",
            "/",
            "?",
            "&",
            "=",
            ",",
            "%",
            "%a€",
            "#",
            "[",
            "]",
            "h",
            "u",
            "€",
            "tls",
            "ssl",
            "true",
            "w",
            "tlsCertificateKeyFilePassword=",
            "authMechanismProperties=AWS_SESSION_TOKEN:",
            "proxyPassword=",
            ".sock",
        ])
        .prop_map(str::to_owned),
    ];
    let tail = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    (prop::sample::select(vec!["mongodb://", "mongodb+srv://", ""]), tail)
        .prop_map(move |(scheme, tail)| format!("{scheme}u:{secret}{tail}"))
}

proptest! {
    #[test]
    fn no_text_panics(text: String, tail: String) {
        let _ = Uri::parse(&text);
        let _ = Uri::parse(&format!("mongodb://{tail}"));
        let _ = Uri::parse(&format!("mongodb://u:{tail}@h/?{text}"));
    }

    #[test]
    fn no_error_repeats_a_password(text in nearly("Xq7-s3cret")) {
        if let Err(error) = Uri::parse(&text) {
            prop_assert!(!format!("{error} {error:?}").contains("Xq7"), "{text}: {error}");
        }
    }

    #[test]
    fn a_password_of_any_characters_never_shows(password in "\\PC{6,20}", host in "[a-z]{3,8}") {
        let encoded = encoding::encode_all(&password);
        let uri = uri(&format!("mongodb://user:{encoded}@{host}/"));
        prop_assert_eq!(uri.to_string(), format!("mongodb://user:***@{host}/"));
        for text in [&password, &encoded, &format!("{password:?}")] {
            let redacted = uri.redact(&format!("a {text} b"));
            prop_assert_eq!(redacted.trim_matches(['a', 'b', ' ', '"']), "***");
        }
    }
}

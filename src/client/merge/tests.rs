use std::time::Duration;

use mongodb::options::{ClientOptions, ReadPreference, SelectionCriteria, Tls};
use proptest::prelude::*;

use super::*;
use crate::client::version::DRIVER_VERSION;
use crate::plan::Driver;

fn setting(from: OptionSource, name: &str, value: Option<&str>) -> OptionSetting {
    OptionSetting { name: name.into(), value: value.map(str::to_owned), from }
}

fn set(name: &str, value: &str) -> OptionSetting {
    setting(OptionSource::Set, name, Some(value))
}

fn resolve(uri: &str, settings: &[OptionSetting], version: &str) -> Result<Resolved, UriError> {
    resolve_options(&Uri::parse(uri).unwrap(), settings, None, &Driver::rust(version))
}

fn option<'a>(resolved: &'a Resolved, name: &str) -> (&'a str, OptionSource) {
    let option = resolved.options.iter().find(|o| o.name == name).unwrap();
    (&option.value, option.from)
}

async fn driver(uri: &Uri) -> mongodb::error::Result<ClientOptions> {
    ClientOptions::parse(uri.expose()).await
}

#[test]
fn the_stronger_source_wins() {
    use OptionSource::{Profile, Set, Vary};
    let resolved = resolve(
        "mongodb://h/?maxPoolSize=1&retryReads=true&w=1&minPoolSize=1",
        &[
            setting(Profile, "maxPoolSize", Some("2")),
            setting(Vary, "maxPoolSize", Some("4")),
            setting(Set, "MAXPOOLSIZE", Some("3")),
            setting(Profile, "retryReads", Some("false")),
            setting(Set, "retryReads", None),
            setting(Set, "minPoolSize", Some("5")),
            setting(Set, "minPoolSize", Some("6")),
        ],
        "3.9.1",
    )
    .unwrap();
    assert_eq!(resolved.uri.expose(), "mongodb://h/?maxPoolSize=4&w=1&minPoolSize=6&appName=overdrive");
    assert_eq!(option(&resolved, "maxPoolSize"), ("4", Vary));
    assert_eq!(option(&resolved, "minPoolSize"), ("6", Set));
    assert_eq!(option(&resolved, "w"), ("1", OptionSource::Uri));
    assert_eq!(option(&resolved, "retryReads"), ("true", OptionSource::Default));
    assert_eq!(option(&resolved, "appName"), ("overdrive", OptionSource::Overdrive));
    assert_eq!(option(&resolved, "maxAdaptiveRetries"), ("2", OptionSource::Default));
}

#[test]
fn an_app_name_is_ours_only_if_nobody_spoke() {
    let name = |uri, settings: &[_]| resolve(uri, settings, "3.9.1").unwrap().uri.option("appName");
    assert_eq!(name("mongodb://h", &[]).as_deref(), Some("overdrive"));
    assert_eq!(name("mongodb://h/?appname=x", &[]).as_deref(), Some("x"));
    assert_eq!(name("mongodb://h", &[setting(OptionSource::Vary, "appName", None)]), None);
}

#[test]
fn tag_sets_of_one_source_add_up_and_replace_weaker_ones() {
    let resolved = resolve(
        "mongodb://h/?readPreference=nearest&readPreferenceTags=a:b&readPreferenceTags=c:d",
        &[set("readPreferenceTags", "dc:ny,r:1"), set("readPreferenceTags", "")],
        "3.9.1",
    )
    .unwrap();
    assert_eq!(option(&resolved, "readPreferenceTags").0, "dc:ny,r:1;");
    assert!(resolved.uri.expose().contains("=nearest&readPreferenceTags=dc:ny,r:1&readPreferenceTags=&"));
}

#[test]
fn older_drivers_go_without_the_overload_options() {
    let settings = [set("maxAdaptiveRetries", "5")];
    let uri = "mongodb://h/?enableOverloadRetargeting=true";
    let old = resolve(uri, &settings, "3.5.2").unwrap();
    assert_eq!(old.uri.expose(), "mongodb://h/?appName=overdrive");
    insta::assert_snapshot!(old.notices.join("\n"), @r##"
`enableOverloadRetargeting` (from the connection string) is left out: driver 3.5.2 does not know it, 3.6.0 is the first that does
`maxAdaptiveRetries` (from --set) is left out: driver 3.5.2 does not know it, 3.6.0 is the first that does
"##);
    assert!(!old.options.iter().any(|o| o.name == "maxAdaptiveRetries"));
    let new = resolve(uri, &settings, "3.6.0").unwrap();
    assert!(new.notices.is_empty());
    assert_eq!(option(&new, "maxAdaptiveRetries"), ("5", OptionSource::Set));
}

#[test]
fn mistakes_name_their_sources() {
    let error = |uri, settings: &[_]| resolve(uri, settings, "3.9.1").unwrap_err().to_string();
    insta::assert_snapshot!(error("mongodb://h/?tlsCAFile=ca.pem", &[set("tls", "false")]), @"`tls=false` (from --set) and `tlsCAFile` (from the connection string) exclude each other; take one of them away");
    insta::assert_snapshot!(error("mongodb://h", &[set("maxpolsize", "1"), setting(OptionSource::Vary, "wTimeout", None)]), @r##"
--set: unknown option `maxpolsize`; did you mean `maxPoolSize`?
--vary: unknown option `wTimeout`; did you mean `wtimeoutMS`?
"##);
    insta::assert_snapshot!(error("mongodb://h", &[set("maxAdaptiveRetries", "32")]), @"`maxAdaptiveRetries=32` (from --set): driver 3.9 computes 2^attempt in 32 bits: from attempt 32 on a release build does not back off at all and a debug build panics; use 31 or less");
    insta::assert_snapshot!(error("mongodb://h", &[set("maxStalenessSeconds", "100"), set("readPreference", "primary")]), @"`maxStalenessSeconds=100` (from --set) does not go with `readPreference=primary` (from --set); take one of them away");
    insta::assert_snapshot!(error("mongodb://h/?readPreference=nearest&maxStalenessSeconds=100", &[set("heartbeatFrequencyMS", "95000")]), @"`maxStalenessSeconds=100` (from the connection string) must be at least 10 s longer than `heartbeatFrequencyMS=95000` (from --set)");
}

#[test]
fn encryption_is_on_where_an_option_or_srv_turns_it_on() {
    let tls = |uri| option(&resolve(uri, &[], "3.9.1").unwrap(), "tls").0.to_owned();
    assert_eq!(tls("mongodb://h"), "false");
    assert_eq!(tls("mongodb://h/?tlsInsecure=true"), "true");
    assert_eq!(tls("mongodb+srv://a.b.c"), "true");
}

#[tokio::test]
async fn the_driver_reads_what_was_meant() {
    let resolved = resolve(
        "mongodb://us%20er:p%40ss%2Fw%3Ard@A.example:1,[::1]/db?authSource=%24external&readPreference=secondaryPreferred\
         &readPreferenceTags=dc:ny&maxStalenessSeconds=120&ssl=true&tlsCAFile=/c%26a.pem",
        &[
            set("maxPoolSize", "500"),
            set("serverMonitoringMode", "poll"),
            set("heartbeatFrequencyMS", "500"),
            set("appName", "ä & b=c@d?"),
            set("compressors", "zstd,zlib"),
            set("retryReads", "false"),
            set("w", "majority"),
        ],
        DRIVER_VERSION,
    )
    .unwrap();
    let options = driver(&resolved.uri).await.unwrap();
    let credential = options.credential.unwrap();
    assert_eq!(credential.username.as_deref(), Some("us er"));
    assert_eq!(credential.password.as_deref(), Some("p@ss/w:rd"));
    assert_eq!(credential.source.as_deref(), Some("$external"));
    assert_eq!(options.app_name.as_deref(), Some("ä & b=c@d?"));
    assert_eq!(options.max_pool_size, Some(500));
    assert_eq!(options.heartbeat_freq, Some(Duration::from_millis(500)));
    assert_eq!(options.retry_reads, Some(false));
    assert_eq!(options.default_database.as_deref(), Some("db"));
    assert_eq!(options.hosts.len(), 2);
    assert_eq!(options.compressors.map(|c| c.len()), Some(2));
    assert!(matches!(
        options.selection_criteria,
        Some(SelectionCriteria::ReadPreference(ReadPreference::SecondaryPreferred { .. }))
    ));
    let Some(Tls::Enabled(tls)) = options.tls else {
        panic!("no TLS");
    };
    assert_eq!(tls.ca_file_path.unwrap().to_str(), Some("/c&a.pem"));
}

#[tokio::test]
async fn the_driver_accepts_every_option_of_the_table() {
    let known = |spec: &&OptionSpec| spec.known_to(Version::parse(DRIVER_VERSION));
    for spec in OPTIONS.iter().filter(known) {
        let samples: &[&str] = match spec.name {
            "appName"
            | "authSource"
            | "replicaSet"
            | "tlsCAFile"
            | "tlsCertificateKeyFile"
            | "tlsCertificateKeyFilePassword" => &["x", "ä&=%@?/#+ y"],
            "authMechanism" => &["SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN"],
            "authMechanismProperties" => &["SERVICE_NAME:x,AWS_SESSION_TOKEN:y="],
            "compressors" => &["snappy,ZLIB,zstd", "snappy"],
            "heartbeatFrequencyMS" => &["500", "2147483647"],
            "maxStalenessSeconds" => &["-1", "90", "2147483647"],
            "readConcernLevel" => &["local", "majority", "linearizable", "available", "snapshot"],
            "readPreference" => &["primary", "PRIMARYPREFERRED", "secondary", "nearest"],
            "readPreferenceTags" => &["", "a:b", "a:b,c:d"],
            "serverMonitoringMode" => &["auto", "stream", "Poll"],
            "uuidRepresentation" => &["cSharpLegacy", "javaLegacy", "pythonLegacy"],
            "w" => &["0", "3", "majority", "tag"],
            "zlibCompressionLevel" => &["-1", "9"],
            "maxConnecting" | "maxPoolSize" => &["1", "4294967295"],
            "maxAdaptiveRetries" => &["0", "31"],
            "minPoolSize" => &["0", "4294967295"],
            name if name.contains("MS") => &["0", "2147483647"],
            // These two need SRV, and SRV a name server.
            "srvMaxHosts" | "srvServiceName" => continue,
            _ => &["true", "false"],
        };
        for sample in samples {
            let sample = super::super::uri::encoding::encode_value(sample);
            let beside = match spec.name {
                "maxStalenessSeconds" | "readPreferenceTags" => "readPreference=nearest&",
                _ => "",
            };
            let text = format!("mongodb://u:p@h/?{beside}{}={sample}", spec.name);
            let uri = Uri::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            driver(&uri).await.unwrap_or_else(|error| panic!("{text}: {error}"));
            for uri in [uri.control(), uri.with_direct("/tmp/a.sock")] {
                driver(&uri).await.unwrap_or_else(|error| panic!("{uri}: {error}"));
            }
        }
    }
}

/// Options with values that are right, nearly right, and wrong.
fn any_option() -> impl Strategy<Value = (String, String)> {
    let names: Vec<_> =
        OPTIONS.iter().map(|spec| spec.name).filter(|name| !name.starts_with("srv")).collect();
    let values = prop::sample::select(vec![
        "true",
        "false",
        "0",
        "1",
        "31",
        "100",
        "-1",
        "500",
        "90",
        "majority",
        "primary",
        "nearest",
        "a:b",
        "zlib",
        "poll",
        "local",
        "SCRAM-SHA-1",
        "MONGODB-X509",
        "PLAIN",
        "MONGODB-OIDC",
        "javaLegacy",
        "$external",
        "x&y=z@€?%",
        "2147483647",
        "4294967295",
    ]);
    (prop::sample::select(names), values).prop_map(|(name, value)| (name.to_owned(), value.to_owned()))
}

proptest! {
    /// What passes here never surprises the driver.
    #[test]
    fn the_driver_takes_whatever_passes(
        uri in prop::sample::select(vec![
            "mongodb://h", "mongodb://u:p%25%40@h:1,[::1]:2/d", "mongodb://%C3%A9@h/", "mongodb://%2Fa%2Fb.sock/d?w=1",
            "mongodb://h/?tlsCAFile=x&readPreference=secondary", "mongodb://a,b/?replicaSet=r&readPreference=nearest",
        ]),
        options in prop::collection::vec(any_option(), 0..6),
    ) {
        let settings: Vec<_> = options.iter().map(|(name, value)| set(name, value)).collect();
        if let Ok(resolved) = resolve(uri, &settings, DRIVER_VERSION) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let parsed = runtime.block_on(driver(&resolved.uri));
            prop_assert!(parsed.is_ok(), "{}: {:?}", resolved.uri, parsed.err());
            let again = Uri::parse(resolved.uri.expose());
            prop_assert_eq!(again.as_ref(), Ok(&resolved.uri));
        }
    }

    /// Texts that overdrive lets through from anywhere, the driver lets through, too.
    #[test]
    fn the_driver_agrees_about_userinfo_and_hosts(
        userinfo in "([a-z%0-9:@/?€]{0,8}@)?", hosts in "[a-z0-9:,.\\[\\]%]{0,12}", database in "(/[a-z%0-9$. ]{0,5})?",
    ) {
        if let Ok(uri) = Uri::parse(&format!("mongodb://{userinfo}{hosts}{database}")) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let parsed = runtime.block_on(driver(&uri));
            prop_assert!(parsed.is_ok(), "{}: {:?}", uri, parsed.err());
        }
    }
}

#[test]
fn faults_that_go_by_name_hit_nobody_elses_connections() {
    let shop = Uri::parse("mongodb://127.0.0.1/?appName=shop").unwrap();
    let resolved = resolve_options(&shop, &[], Some("overdrive-1"), &Driver::rust("3.9.1")).unwrap();
    assert_eq!(resolved.uri.option("appName").as_deref(), Some("overdrive-1"));
    assert_eq!(resolved.notices.len(), 1, "the name was somebody's choice");
    let unset = OptionSetting { name: "appName".to_owned(), value: None, from: OptionSource::Set };
    let resolved = resolve_options(&shop, &[unset], Some("overdrive-1"), &Driver::rust("3.9.1")).unwrap();
    assert_eq!(resolved.uri.option("appName").as_deref(), Some("overdrive-1"));
    let own = resolve_options(
        &Uri::parse("mongodb://127.0.0.1").unwrap(),
        &[],
        Some("overdrive-1"),
        &Driver::rust("3.9.1"),
    )
    .unwrap();
    assert!(own.notices.is_empty(), "{:?}", own.notices);
}

#[test]
fn params_are_what_was_set_and_what_the_connection_string_sets() {
    let text =
        "mongodb://u:p@h/?replicaSet=r&tls=true&authSource=admin&appName=a&maxPoolSize=7&retryReads=false";
    let settings = [
        OptionSetting { name: "maxPoolSize".into(), value: Some("9".into()), from: OptionSource::Set },
        OptionSetting { name: "maxIdleTimeMS".into(), value: None, from: OptionSource::Set },
    ];
    let resolved =
        resolve_options(&Uri::parse(text).unwrap(), &settings, None, &Driver::rust("3.9.1")).unwrap();
    let params = resolved.params(&settings);
    let shown: Vec<_> = params.iter().map(|(name, value)| (&**name, value.as_deref())).collect();
    assert_eq!(shown, [("maxPoolSize", Some("9")), ("maxIdleTimeMS", None), ("retryReads", Some("false"))]);
}

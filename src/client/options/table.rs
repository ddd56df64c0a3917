//! The table of options, read off the parser of driver 3.9.1 and compared with 3.3.0, 3.6.0 and 3.8.2.

use super::{Kind, OptionSpec};
use crate::client::version::Version;

/// Every option that the Rust driver, as overdrive is built with it, accepts in a connection string.
pub const OPTIONS: &[OptionSpec] = &[
    option("appName", Kind::Text { max_bytes: 128 }),
    option(
        "authMechanism",
        Kind::Exactly(&[
            "SCRAM-SHA-1",
            "SCRAM-SHA-256",
            "MONGODB-X509",
            "PLAIN",
            "MONGODB-OIDC",
            "MONGODB-AWS",
            "GSSAPI",
        ]),
    ),
    option("authMechanismProperties", Kind::Properties),
    option("authSource", TEXT),
    option("compressors", Kind::List(&["snappy", "zlib", "zstd"])),
    option("connectTimeoutMS", MILLIS).or_else("10000"),
    option("directConnection", Kind::Bool).or_else("false"),
    option("enableOverloadRetargeting", Kind::Bool).or_else("false").since(3, 6),
    option("heartbeatFrequencyMS", Kind::Int { min: 500, max: MAX_MILLIS }).or_else("10000"),
    option("journal", Kind::Bool),
    option("loadBalanced", Kind::Bool).or_else("false"),
    option("localThresholdMS", MILLIS).or_else("15"),
    option("maxAdaptiveRetries", Kind::Int { min: 0, max: U32_MAX }).or_else("2").since(3, 6),
    option("maxConnecting", AT_LEAST_ONE).or_else("2"),
    option("maxIdleTimeMS", MILLIS).or_else("0"),
    option("maxPoolSize", AT_LEAST_ONE).or_else("10"),
    option("maxStalenessSeconds", Kind::Staleness).or_else("-1"),
    option("minPoolSize", Kind::Int { min: 0, max: U32_MAX }).or_else("0"),
    option(
        "readConcernLevel",
        Kind::Exactly(&["local", "majority", "linearizable", "available", "snapshot"]),
    ),
    option(
        "readPreference",
        Kind::OneOf(&["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"]),
    )
    .or_else("primary"),
    option("readPreferenceTags", Kind::Tags),
    option("replicaSet", TEXT),
    option("retryReads", Kind::Bool).or_else("true"),
    option("retryWrites", Kind::Bool).or_else("true"),
    option("serverMonitoringMode", Kind::OneOf(&["auto", "stream", "poll"])).or_else("auto"),
    option("serverSelectionTimeoutMS", MILLIS).or_else("30000"),
    option("srvMaxHosts", Kind::Int { min: 0, max: U32_MAX }),
    option("srvServiceName", TEXT),
    option("tls", Kind::Bool),
    option("tlsAllowInvalidCertificates", Kind::Bool),
    option("tlsCAFile", TEXT),
    option("tlsCertificateKeyFile", TEXT),
    option("tlsCertificateKeyFilePassword", TEXT).secret(),
    option("tlsInsecure", Kind::Bool),
    option("uuidRepresentation", Kind::OneOf(&["cSharpLegacy", "javaLegacy", "pythonLegacy"])),
    option("w", Kind::WriteConcern),
    option("waitQueueTimeoutMS", MILLIS),
    option("wtimeoutMS", MILLIS),
    option("zlibCompressionLevel", Kind::Int { min: -1, max: 9 }),
];

const NO_TIMEOUT: &str = "the Rust driver has no such timeout (its parser refuses the option); leave it out. What can be \
     bounded is the search for a server (`serverSelectionTimeoutMS`), connecting (`connectTimeoutMS`), and, by \
     `maxTimeMS` in a run_command, a command's time on the server";
const NO_PROXY: &str =
    "overdrive is built without the driver's SOCKS5 support; reach the servers without the proxy";

/// Options that other drivers know, or this one under other circumstances, and what to do instead.
pub(super) const UNSUPPORTED: &[(&str, &str)] = &[
    ("timeoutMS", NO_TIMEOUT),
    ("socketTimeoutMS", NO_TIMEOUT),
    ("waitQueueMultiple", "the Rust driver's queue has no bound"),
    ("adaptiveRetries", "the driver's parser refuses it; `maxAdaptiveRetries` is what bounds retries"),
    (
        "tlsAllowInvalidHostnames",
        "the Rust driver does not take it from a connection string; use `tlsInsecure`",
    ),
    ("tlsDisableOCSPEndpointCheck", "the Rust driver does not check certificates over OCSP"),
    ("tlsDisableCertificateRevocationCheck", "the Rust driver does not check for revoked certificates"),
    ("proxyHost", NO_PROXY),
    ("proxyPort", NO_PROXY),
    ("proxyUsername", NO_PROXY),
    ("proxyPassword", NO_PROXY),
];

/// The driver puts milliseconds into instants later, where very large ones overflow; other drivers stop here, too.
const MAX_MILLIS: i64 = i32::MAX as i64;
const U32_MAX: i64 = u32::MAX as i64;
const MILLIS: Kind = Kind::Int { min: 0, max: MAX_MILLIS };
const AT_LEAST_ONE: Kind = Kind::Int { min: 1, max: U32_MAX };
const TEXT: Kind = Kind::Text { max_bytes: 4096 };

const fn option(name: &'static str, kind: Kind) -> OptionSpec {
    OptionSpec { name, kind, since: None, secret: false, default: None }
}

impl OptionSpec {
    const fn or_else(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    const fn since(mut self, major: u64, minor: u64) -> Self {
        self.since = Some(Version::new(major, minor, 0));
        self
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
}

//! The connection strings of overdrive's own connections, which are never measured.

use super::{Uri, UriOption, host};
use crate::client::options;

/// The name by which servers know overdrive's own connections; limiters exempt it, failpoints spare it.
pub const CONTROL_APP_NAME: &str = "overdrive-control";

/// What it takes to reach the same servers as the same user. Everything else, like retries, pools, timeouts
/// and read preferences, is what a run experiments with, and must not reach the hand that undoes faults.
const KEPT: [&str; 13] = [
    "authMechanism",
    "authMechanismProperties",
    "authSource",
    "directConnection",
    "loadBalanced",
    "replicaSet",
    "srvMaxHosts",
    "srvServiceName",
    "tls",
    "tlsAllowInvalidCertificates",
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "tlsInsecure",
];

/// How long somebody waits for a server.
const PATIENCE: [&str; 2] = ["connectTimeoutMS", "serverSelectionTimeoutMS"];

impl Uri {
    /// The same deployment for a control connection: same user and encryption, named
    /// `overdrive-control`, all else as the driver has it by default.
    pub fn control(&self) -> Self {
        self.with_options(self.control_options(|_| true))
    }

    /// The same for the first look, which takes no longer to find that nobody answers than the user wants to wait.
    pub fn finding(&self) -> Self {
        let patience = self.options.iter().filter(|option| PATIENCE.contains(&option.spec.name));
        let mut options = self.control_options(|_| true);
        options.extend(patience.cloned());
        self.with_options(options)
    }

    /// One member of the deployment for a control connection. `address` is `host:port` as the driver and
    /// the server print it, or a Unix socket's path.
    ///
    /// With SRV, DNS may have named another `authSource` than the text does: see [`Uri::with_auth_source`].
    pub fn with_direct(&self, address: &str) -> Self {
        let of_the_whole =
            ["directConnection", "loadBalanced", "replicaSet", "srvMaxHosts", "srvServiceName"];
        let mut options = self.control_options(|name| !of_the_whole.contains(&name));
        options.extend(option("directConnection", "true"));
        // The driver encrypts by itself when it finds hosts through SRV, but not when it is given them.
        if self.srv && !options.iter().any(|option| option.spec.name == "tls") {
            options.extend(option("tls", "true"));
        }
        let member = Self { srv: false, hosts: vec![host::seed(address)], ..self.clone() };
        member.with_options(options)
    }

    /// The same connection string for so many commands at a time.
    pub fn with_pool(&self, size: u32) -> Self {
        self.with("maxPoolSize", &size.to_string())
    }

    /// The same connection string with this option, instead of the value that it has. One that overdrive does not know is
    /// left out.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let Some(new) = option(name, value) else { return self.clone() };
        let others = self.options.iter().filter(|option| option.spec.name != new.spec.name);
        let options = others.cloned().chain([new.clone()]).collect();
        self.with_options(options)
    }

    /// The same connection string with this `authSource`, unless it has one.
    pub fn with_auth_source(&self, source: &str) -> Self {
        let mut options = self.options.clone();
        if self.userinfo.is_some() && self.option("authSource").is_none() && !source.is_empty() {
            options.extend(option("authSource", source));
        }
        self.with_options(options)
    }

    fn control_options(&self, wanted: impl Fn(&str) -> bool) -> Vec<UriOption> {
        let kept = self.options.iter().filter(|option| {
            let name = option.spec.name;
            (KEPT.contains(&name) || option.spec.secret) && wanted(name)
        });
        let mut options: Vec<_> = kept.cloned().collect();
        options.extend(option("appName", CONTROL_APP_NAME));
        options
    }
}

/// An option of our own; a name that the table lacks would be a mistake here, and tests would see it.
fn option(name: &str, value: &str) -> Option<UriOption> {
    let spec = options::find(name)?;
    let value = value.to_owned();
    Some(UriOption { spec, value })
}

//! One member of a connection string's host list. Hosts are checked but never changed.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::encoding;

/// Whether the driver takes the text for the path of a Unix socket.
pub(super) fn is_socket(host: &str) -> bool {
    host.ends_with(".sock")
}

/// Refuses what the driver would refuse. The reason does not repeat the text: where somebody forgot
/// an `@` or to escape a `?`, what stands in a host's place is a password.
pub(super) fn check(host: &str) -> Result<(), &'static str> {
    if host.is_empty() {
        return Err("is empty; write name:port");
    }
    if is_socket(host) {
        return encoding::decode(host).map(drop).map_err(encoding::DecodeError::reason);
    }
    let (name, port) = split_port(host)?;
    if let Some(port) = port
        && !matches!(port.parse::<u16>(), Ok(1..) if port.bytes().all(|b| b.is_ascii_digit()))
    {
        return Err(
            "needs a port from 1 to 65535 after its `:` (an IPv6 address must stand in [ ]; in `user:password@host` \
             the `@` must not be missing, and `/ ? # @ :` within the password must be escaped as %XX)",
        );
    }
    if name.is_empty() {
        return Err("has no name before its port; an IPv6 address must stand in [ ]");
    }
    if name.chars().any(|c| c.is_whitespace() || c.is_control() || "@?#%[]\\\"<>".contains(c)) {
        return Err("holds a character that no host name has");
    }
    Ok(())
}

/// The name without brackets, and the text after its colon.
fn split_port(host: &str) -> Result<(&str, Option<&str>), &'static str> {
    let Some(literal) = host.strip_prefix('[') else {
        return Ok(match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        });
    };
    let (name, rest) = literal.split_once(']').ok_or("begins with `[` but has no `]`")?;
    if name.parse::<Ipv6Addr>().is_err() {
        return Err("holds no IPv6 address between its [ ]");
    }
    match rest.strip_prefix(':') {
        Some(port) => Ok((name, Some(port))),
        None if rest.is_empty() => Ok((name, None)),
        None => Err("has something else than `:port` after its `]`"),
    }
}

/// Whether a checked host has a port; SRV names must have none.
pub(super) fn has_port(host: &str) -> bool {
    matches!(split_port(host), Ok((_, Some(_))))
}

/// Whether a checked host can only be this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    if is_socket(host) {
        return true;
    }
    let Ok((name, _)) = split_port(host) else {
        return false;
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
        || name.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback())
}

/// Writes a member's address as the driver and the server print it (`::1:27017`, `/tmp/mongodb.sock`)
/// the way a connection string needs it. What has no place in a host is encoded, so that an address
/// can never become another host, a password or an option.
pub(super) fn seed(address: &str) -> String {
    if address.contains('[') {
        return encoded(address);
    }
    if let Some((name, port)) = address.rsplit_once(':')
        && name.parse::<Ipv6Addr>().is_ok()
        && port.parse::<u16>().is_ok()
    {
        return format!("[{name}]:{port}");
    }
    if address.parse::<Ipv6Addr>().is_ok() {
        return format!("[{address}]");
    }
    encoded(address)
}

fn encoded(address: &str) -> String {
    address
        .chars()
        .map(|c| {
            let kept = c.is_alphanumeric() || "-._:[]~".contains(c);
            // An escape that is there already (a socket from a connection string) stays one.
            let escape = c == '%' && encoding::decode(address).is_ok();
            if kept || escape { c.to_string() } else { encoding::encode_all(&c.to_string()) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_the_driver_takes_pass() {
        for host in [
            "localhost",
            "127.0.0.1:27017",
            "[::1]",
            "[::1]:1",
            "%2Ftmp%2Fmongodb-27017.sock",
            "bücher.example:65535",
        ] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
        for host in [
            "", ":1", "::1", "h:", "h:0", "h:65536", "h:+1", "h:s3cret", "[::1", "[x]:1", "[::1]1", "a b",
            "a%20b", "%zz.sock",
        ] {
            let reason = check(host).unwrap_err();
            assert!(!reason.contains("s3cret"), "{reason}");
        }
    }

    #[test]
    fn loopback_is_only_this_machine() {
        for host in ["localhost:1", "LOCALHOST", "127.9.9.9:2", "[::1]:3", "%2Fx.sock"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "128.0.0.1", "[::2]:1", "127.0.0.1.nip.io", "0.0.0.0"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn printed_addresses_become_seeds() {
        assert_eq!(seed("::1:27017"), "[::1]:27017");
        assert_eq!(seed("fe80::1"), "[fe80::1]");
        assert_eq!(seed("[::1]:27017"), "[::1]:27017");
        assert_eq!(seed("db.example:27018"), "db.example:27018");
        assert_eq!(seed("/tmp/mongodb-1.sock"), "%2Ftmp%2Fmongodb-1.sock");
        assert_eq!(seed("%2Ftmp%2Fm.sock"), "%2Ftmp%2Fm.sock");
        assert_eq!(seed("a@b/?x=1,c"), "a%40b%2F%3Fx%3D1%2Cc");
    }
}

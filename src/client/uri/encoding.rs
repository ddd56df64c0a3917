//! Percent-encoding as connection strings use it, stricter than the driver, which panics on some texts.

use std::fmt::Write as _;

/// Why a text cannot be decoded. It holds nothing of the text, which may be a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// A `%` that two hexadecimal digits do not follow.
    StrayPercent,
    /// The bytes are not UTF-8.
    NotUtf8,
}

impl DecodeError {
    /// What is wrong and what to write instead, as the end of a sentence.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::StrayPercent => {
                "holds a `%` without two hexadecimal digits after it; write a literal % as %25"
            }
            Self::NotUtf8 => {
                "holds escapes (%XX) that are not UTF-8; encode each character as its UTF-8 bytes"
            }
        }
    }
}

/// Decodes every `%XX`; a text with anything else after a `%` is an error.
pub(crate) fn decode(text: &str) -> Result<String, DecodeError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(high << 4 | low);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8)
}

fn digit(byte: Option<u8>) -> Result<u8, DecodeError> {
    match byte {
        Some(byte @ b'0'..=b'9') => Ok(byte - b'0'),
        Some(byte @ b'a'..=b'f') => Ok(byte - b'a' + 10),
        Some(byte @ b'A'..=b'F') => Ok(byte - b'A' + 10),
        _ => Err(DecodeError::StrayPercent),
    }
}

/// Encodes all that could end an option's value or be taken for user name and password; what people
/// write in values (`dc:ny,rack:1`, `/etc/ca.pem`, `$external`) stays readable.
pub(crate) fn encode_value(text: &str) -> String {
    encode(text, b"-._~:,/$*")
}

/// Encodes everything but letters and digits, as the driver does when it writes a password.
pub(crate) fn encode_all(text: &str) -> String {
    encode(text, b"")
}

fn encode(text: &str, literal: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || literal.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strays_and_broken_characters_are_errors() {
        assert_eq!(decode("p%40ss%2fw"), Ok("p@ss/w".to_owned()));
        for text in ["%", "%4", "%zz", "a%a€", "%€", "100%"] {
            assert_eq!(decode(text), Err(DecodeError::StrayPercent), "{text}");
        }
        assert_eq!(decode("%ff"), Err(DecodeError::NotUtf8));
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(text: String) {
            prop_assert_eq!(decode(&encode_value(&text)), Ok(text.clone()));
            prop_assert_eq!(decode(&encode_all(&text)), Ok(text));
        }

        #[test]
        fn nothing_panics(text: String) {
            let _ = decode(&text);
        }
    }
}

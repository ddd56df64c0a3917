//! Lines with a checksum: `{"crc32":"1a2b3c4d",` and the rest of a JSON object, of which the checksum is taken.

use serde::{Deserialize, Serialize};

/// A parked operation as it is written.
#[derive(Serialize, Deserialize)]
pub struct Line<T> {
    /// What no other operation has.
    pub id: String,
    /// Its place in the spool.
    pub number: u64,
    /// The number of the first operation of its batch: all before that were on the disk when this was written.
    pub batch: u64,
    /// What was parked.
    pub operation: T,
}

const BEFORE: &[u8] = br#"{"crc32":""#;
const BEHIND: &[u8] = br#"","#;
const DIGITS: usize = 8;

/// The line of an object, its end included. The object must have a field.
pub fn seal(object: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_vec(object)?;
    // What serde writes as an object begins with its brace.
    let rest = json.get(1..).unwrap_or_default();
    Ok([BEFORE, checksum(rest).as_bytes(), BEHIND, rest, b"\n"].concat())
}

/// The JSON text of a line, if it is just as it was sealed.
pub fn checked(line: &[u8]) -> Option<&[u8]> {
    let json = line.strip_suffix(b"\n")?;
    let (digits, rest) = json.strip_prefix(BEFORE)?.split_at_checked(DIGITS)?;
    let rest = rest.strip_prefix(BEHIND)?;
    (digits == checksum(rest).as_bytes()).then_some(json)
}

fn checksum(text: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(text))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sealed() -> Vec<u8> {
        seal(&Line { id: "a-7".to_owned(), number: 7, batch: 5, operation: json!({ "text": "ä\n" }) })
            .unwrap()
    }

    #[test]
    fn a_line_is_json_of_which_the_rest_has_the_checksum() {
        let rest = r#""id":"a-7","number":7,"batch":5,"operation":{"text":"ä\n"}}"#;
        // The polynomial of zip and PNG; worked out with Python's zlib.
        let expected = format!("{{\"crc32\":\"30126e54\",{rest}\n");
        assert_eq!(String::from_utf8(sealed()).unwrap(), expected);
        let value: Value = serde_json::from_slice(checked(&sealed()).unwrap()).unwrap();
        assert_eq!(value["operation"]["text"], "ä\n");
    }

    #[test]
    fn no_part_and_no_change_of_a_line_passes() {
        let line = sealed();
        assert!(checked(&line).is_some());
        for at in 0..line.len() {
            assert_eq!(checked(&line[..at]), None, "{at} bytes");
            for bit in 0..8 {
                let mut changed = line.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(checked(&changed), None, "bit {bit} of byte {at}");
            }
        }
        assert_eq!(checked(&[&line[..], &line[..]].concat()), None);
    }
}

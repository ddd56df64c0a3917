//! Distributions as text: the HdrHistogram V2 encoding in base64 beside the exact sum, `null` when empty.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as HdrDeserializer, Serializer as _, V2Serializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{CEILING_US, DIGITS, Latencies, empty};

#[derive(Serialize, Deserialize)]
struct Encoded {
    hdr: String,
    sum_ns: u64,
    #[serde(default)]
    clipped: u64,
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(histogram) = &self.histogram else { return serializer.serialize_none() };
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes).map_err(S::Error::custom)?;
        Encoded { hdr: STANDARD.encode(bytes), sum_ns: self.sum_ns, clipped: self.clipped }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(encoded) = Option::<Encoded>::deserialize(deserializer)? else { return Ok(Self::default()) };
        let histogram = decode(&encoded.hdr).map_err(D::Error::custom)?;
        Ok(Self {
            histogram: (!histogram.is_empty()).then_some(histogram),
            sum_ns: encoded.sum_ns,
            clipped: encoded.clipped,
        })
    }
}

/// Whoever made it, it becomes one like our own: the same precision, and as wide as its values need.
fn decode(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD.decode(text).map_err(|error| format!("a histogram is no base64: {error}"))?;
    let theirs: Histogram<u64> = HdrDeserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| format!("a histogram is not in the V2 encoding: {error}"))?;
    if theirs.sigfig() != DIGITS {
        return Err(format!("a histogram has {} digits, not {DIGITS}", theirs.sigfig()));
    }
    // The largest value is told as its bucket's upper end.
    if theirs.max() > theirs.highest_equivalent(CEILING_US) {
        return Err(format!("a histogram holds {} µs, above the ceiling of {CEILING_US}", theirs.max()));
    }
    let mut histogram = empty();
    histogram.add(&theirs).map_err(|error| error.to_string())?;
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn there_and_back(times: &Latencies) -> Latencies {
        serde_json::from_str(&serde_json::to_string(times).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(nanos in proptest::collection::vec(0_u64..200_000_000_000, 0..60)) {
            let mut times = Latencies::default();
            nanos.iter().for_each(|&nanos| times.record_or_none_ns(nanos));
            prop_assert_eq!(there_and_back(&times), times);
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        assert_eq!(serde_json::to_string(&Latencies::default()).unwrap(), "null");
        let read =
            |hdr: &str| serde_json::from_value::<Latencies>(serde_json::json!({ "hdr": hdr, "sum_ns": 0 }));
        let error = |hdr: &str| read(hdr).unwrap_err().to_string();
        assert!(error("?").contains("base64"));
        assert!(error("AAAA").contains("V2"));
        let encoded = |digits, value: u64| {
            let mut histogram = Histogram::<u64>::new(digits).unwrap();
            histogram.record(value).unwrap();
            let mut bytes = Vec::new();
            V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
            STANDARD.encode(bytes)
        };
        assert!(error(&encoded(2, 7)).contains("2 digits"));
        assert!(error(&encoded(3, 200_000_000)).contains("ceiling"));
        assert_eq!(read(&encoded(3, CEILING_US)).unwrap().count(), 1);
    }
}

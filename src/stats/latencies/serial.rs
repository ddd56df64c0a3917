//! A distribution in JSON: null when it is empty, else `[histogram, sum_ns, clipped]`, the histogram in the compressed V2
//! form in base64, as `latency.hlog` has it. Nothing is lost on the way.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{DIGITS, Latencies, empty};

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(histogram) = &self.histogram else { return serializer.serialize_none() };
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(histogram, &mut bytes).map_err(S::Error::custom)?;
        (STANDARD.encode(bytes), self.sum_ns, self.clipped).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some((text, sum_ns, clipped)) = Option::<(String, u64, u64)>::deserialize(deserializer)? else {
            return Ok(Self::default());
        };
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        let read: Histogram<u64> = Reader::new().deserialize(&mut &bytes[..]).map_err(D::Error::custom)?;
        if read.sigfig() != DIGITS {
            return Err(D::Error::custom(format!("a histogram of {DIGITS} digits is wanted")));
        }
        // One that is read does not grow when larger times are added.
        let mut histogram = empty();
        histogram.add(&read).map_err(D::Error::custom)?;
        Ok(Self { histogram: Some(histogram), sum_ns, clipped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::latencies::CEILING_US;
    use proptest::prelude::*;

    fn back(times: &Latencies) -> Latencies {
        serde_json::from_str(&serde_json::to_string(times).unwrap()).unwrap()
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for text in ["5", "[\"x\", 1, 0]", "[\"AAAA\", 1, 0]", "[\"\", 1, 0]"] {
            assert!(serde_json::from_str::<Latencies>(text).is_err(), "{text}");
        }
        assert_eq!(back(&Latencies::default()), Latencies::default());
    }

    proptest! {
        #[test]
        fn nothing_is_lost(nanos in prop::collection::vec(0..CEILING_US * 1100, 0..50), more in 0..CEILING_US * 1000) {
            let mut times = Latencies::default();
            nanos.iter().for_each(|&nanos| times.record_or_none_ns(nanos));
            let mut read = back(&times);
            prop_assert_eq!(&read, &times);
            // It grows as one that was never written.
            read.record_ns(more);
            times.record_ns(more);
            prop_assert_eq!(read, times);
        }
    }
}

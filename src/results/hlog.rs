//! `latency.hlog`: whole distributions, as an HdrHistogram V2 interval log with values in microseconds. A line holds ten
//! seconds of one tag, `trial/segment/operation/measure` (of several clients `client.operation`), or `trial/segment/role/staleness` of servers; the time is of the interval's start since the epoch.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};
use jiff::Timestamp;

use super::Error;
use crate::stats::{Latencies, OpStats};

/// What one line spans.
const LINE_NS: u64 = 10_000_000_000;

/// A measure's name in the tag, and where its times are.
type Measure = (&'static str, fn(&OpStats) -> &Latencies);

/// The measures that are logged.
const MEASURES: [Measure; 6] = [
    ("latency", |s| &s.latency),
    ("service", |s| &s.service),
    ("failed_latency", |s| &s.failed_latency),
    ("attempt_ok", |s| &s.attempt_ok),
    ("attempt_rejected", |s| &s.attempt_rejected),
    ("checkout", |s| &s.checkout),
];

/// The log of one run, which several trials add to.
pub(crate) struct HistogramLog {
    path: PathBuf,
    file: File,
    serializer: V2DeflateSerializer,
    go: Timestamp,
    /// By tag without the measure.
    pending: BTreeMap<String, OpStats>,
    /// By whole tag.
    staleness: BTreeMap<String, Latencies>,
    start_ns: u64,
    end_ns: u64,
}

impl HistogramLog {
    /// Opens the log; a new one gets its heading.
    pub fn open(path: PathBuf, go: Timestamp) -> Result<Self, Error> {
        let failed = |e| Error::file(&path, e);
        let mut file = OpenOptions::new().append(true).create(true).open(&path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() == 0 {
            let mut heading = Vec::new();
            IntervalLogWriterBuilder::new()
                .add_comment("overdrive: microseconds; Tag=trial/segment/operation/measure")
                .with_start_time(UNIX_EPOCH + since_epoch(go))
                .begin_log_with(&mut heading, &mut V2DeflateSerializer::new())
                .map_err(failed)?;
            file.write_all(&heading).map_err(failed)?;
        }
        let serializer = V2DeflateSerializer::new();
        let (pending, staleness) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { path, file, serializer, go, pending, staleness, start_ns: 0, end_ns: 0 })
    }

    /// Adds what happened in an interval; call [`Self::advance`] when it is all there.
    pub fn add(&mut self, trial: u32, segment: &str, operation: &str, stats: &OpStats) {
        let tag = format!("{trial}/{}/{}", tag_part(segment), tag_part(operation));
        self.pending.entry(tag).or_default().merge(stats);
    }

    /// Adds how stale reads were in an interval; call [`Self::advance`] when it is all there.
    pub fn add_staleness(&mut self, trial: u32, segment: &str, role: &str, times: &Latencies) {
        let tag = format!("{trial}/{}/{}/staleness", tag_part(segment), tag_part(role));
        self.staleness.entry(tag).or_default().merge(times);
    }

    /// Takes note of an interval's end; writes once ten seconds are full.
    pub fn advance(&mut self, end_ns: u64) -> Result<(), Error> {
        self.end_ns = end_ns;
        if end_ns.saturating_sub(self.start_ns) >= LINE_NS { self.flush() } else { Ok(()) }
    }

    /// Writes what there is.
    pub fn flush(&mut self) -> Result<(), Error> {
        let text = self.lines().map_err(|e| Error::file(&self.path, e))?;
        self.file.write_all(&text).map_err(|e| Error::file(&self.path, e))?;
        self.pending.clear();
        self.staleness.clear();
        self.start_ns = self.end_ns;
        Ok(())
    }

    fn lines(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let start = since_epoch(self.go) + Duration::from_nanos(self.start_ns);
        let length = Duration::from_nanos(self.end_ns - self.start_ns);
        let mut log = IntervalLogWriterBuilder::new().begin_log_with(&mut text, &mut self.serializer)?;
        let mut write = |tag: &str, times: &Latencies| {
            let Some(histogram) = times.histogram() else { return Ok(()) };
            log.write_histogram(histogram, start, length, Tag::new(tag)).map_err(|e| match e {
                IntervalLogWriterError::IoError(e) => e,
                IntervalLogWriterError::SerializeError(e) => io::Error::other(e),
            })
        };
        for (tag, stats) in &self.pending {
            for (measure, of) in MEASURES {
                write(&format!("{tag}/{measure}"), of(stats))?;
            }
        }
        for (tag, times) in &self.staleness {
            write(tag, times)?;
        }
        Ok(text)
    }
}

/// Text without what separates the parts of a tag, or a tag from what follows it.
pub(crate) fn tag_part(text: &str) -> String {
    text.replace(['/', ',', ' ', '\n', '\r'], "_")
}

/// A wall-clock time as the log wants it; before 1970 there were no logs.
fn since_epoch(time: Timestamp) -> Duration {
    time.duration_since(Timestamp::UNIX_EPOCH).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    fn read(text: &[u8]) -> Vec<(String, f64, f64, Histogram<u64>)> {
        IntervalLogIterator::new(text)
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(line) => Some(line),
                _ => None,
            })
            .map(|line| {
                let bytes =
                    base64::engine::general_purpose::STANDARD.decode(line.encoded_histogram()).unwrap();
                let histogram = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
                let tag = line.tag().unwrap().as_str().to_owned();
                (tag, line.start_timestamp().as_secs_f64(), line.duration().as_secs_f64(), histogram)
            })
            .collect()
    }

    #[test]
    fn what_is_written_can_be_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("latency.hlog");
        let go: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut log = HistogramLog::open(path.clone(), go).unwrap();
        let mut stats = OpStats::default();
        for us in [100, 200, 40_000] {
            stats.latency.record_ns(us * 1000);
        }
        // 4 s are not enough for a line, 12 s are; the rest comes at the end.
        for end_s in [4, 12, 15] {
            log.add(2, "limit, then more", "find/by id", &stats);
            log.advance(end_s * 1_000_000_000).unwrap();
        }
        log.flush().unwrap();
        drop(log);
        // The next trial adds to the same log without another heading.
        drop(HistogramLog::open(path.clone(), go).unwrap());

        let text = std::fs::read(&path).unwrap();
        assert_eq!(String::from_utf8_lossy(&text).matches("StartTime").count(), 1);
        let lines = read(&text);
        assert_eq!(lines.len(), 2);
        let epoch = 1_767_225_600.0;
        let (tag, start, length, histogram) = &lines[0];
        assert_eq!((tag.as_str(), *start, *length), ("2/limit__then_more/find_by_id/latency", epoch, 12.0));
        assert_eq!((histogram.len(), histogram.min(), histogram.count_at(200)), (6, 100, 2));
        let (_, start, length, histogram) = &lines[1];
        assert_eq!((*start, *length, histogram.len()), (epoch + 12.0, 3.0, 3));
        assert_eq!(histogram.value_at_quantile(0.5), 200);
    }
}

//! The same stretch of time of all shards. They begin together and cut their intervals at the same times, so that in general
//! these are the same seconds; where one has cut less often, since its disk was slow, the others' are joined as well.

use crate::compare::Error;
use crate::results::accumulated::Accumulated;
use crate::results::notes::saturation;
use crate::results::shard_log::{FILE, Line, Lines};
use crate::results::summary::Summary;
use crate::results::writer::Batch;
use crate::snapshot::ServerFacts;

use super::belonging::Stored;

/// All shards' intervals, from the first to the last.
pub(super) struct Intervals {
    streams: Vec<Stream>,
    sequence: u64,
    end_ns: u64,
}

struct Stream {
    lines: Lines,
    facts: crate::results::TrialFacts,
    /// What it comes to by itself: how its own machine fared no sum tells.
    sums: Accumulated,
}

impl Stream {
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        let Some(Line::Interval(batch)) = self.lines.next(true).map_err(Error::stored)? else {
            return Ok(None);
        };
        self.sums.add(&self.facts.plan, &batch.snapshot);
        Ok(Some(*batch))
    }
}

impl Intervals {
    /// Of these shards.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn open(shards: &[Stored]) -> Result<Self, Error> {
        let open = |shard: &Stored| {
            let facts = shard.begin.facts.clone();
            Ok(Stream {
                lines: Lines::open(&shard.directory.join(FILE)).map_err(Error::stored)?,
                sums: Accumulated::new(&facts.plan),
                facts,
            })
        };
        let streams = shards.iter().map(open).collect::<Result<_, Error>>()?;
        Ok(Self { streams, sequence: 0, end_ns: 0 })
    }

    /// The next stretch that ends at the same time in all shards, or with a shard's last interval.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn next(&mut self) -> Result<Option<Batch>, Error> {
        let mut parts = self.streams.iter_mut().map(Stream::next).collect::<Result<Vec<_>, _>>()?;
        let Some(mut end_ns) = latest(&parts) else { return Ok(None) };
        loop {
            for (stream, part) in self.streams.iter_mut().zip(&mut parts) {
                while let Some(behind) = part.as_mut().filter(|part| part.snapshot.end_ns < end_ns) {
                    let Some(later) = stream.next()? else { break };
                    behind.snapshot.merge_after(later.snapshot);
                    ServerFacts::merge_after(&mut behind.servers, later.servers);
                }
            }
            match latest(&parts) {
                Some(later) if later > end_ns => end_ns = later,
                _ => break,
            }
        }
        // The segment is that of whoever was there to the end.
        parts.sort_by_key(|part| std::cmp::Reverse(part.as_ref().map_or(0, |part| part.snapshot.end_ns)));
        let mut parts = parts.into_iter().flatten();
        let Some(mut whole) = parts.next() else { return Ok(None) };
        for part in parts {
            whole.snapshot.merge_beside(part.snapshot);
            ServerFacts::merge_after(&mut whole.servers, part.servers);
        }
        whole.snapshot.sequence = self.sequence;
        whole.snapshot.start_ns = self.end_ns;
        self.sequence += 1;
        self.end_ns = end_ns;
        Ok(Some(whole))
    }

    /// What has to be known of single shards when all intervals have been taken: a machine that was the limit does not show
    /// among many that were not.
    pub fn notes(&self) -> Vec<String> {
        let note = |stream: &Stream| {
            let summary = Summary::so_far(&stream.facts, &stream.sums);
            let text = saturation(&stream.facts, summary.whole())?;
            Some(format!("shard {}: {text}", stream.facts.plan.shard?))
        };
        self.streams.iter().filter_map(note).collect()
    }
}

fn latest(parts: &[Option<Batch>]) -> Option<u64> {
    parts.iter().flatten().map(|part| part.snapshot.end_ns).max()
}

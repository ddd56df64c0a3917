//! A trial's files while it runs: takes intervals and events, and writes each at once.

use super::accumulated::Accumulated;
use super::csv_file::{CsvFile, columns};
use super::dead_letters::{self, DeadLetterFile};
use super::end_tables::EndTables;
use super::facts::{Scope, TrialFacts, signed_seconds};
use super::hlog::HistogramLog;
use super::intervals::{self, Interval};
use super::notes::missed;
use super::shard_log::{Begin, End, FILE, Line, ShardLog};
use super::tables::{EventRow, IntervalRow, ServerRow};
use super::writer::{Batch, Sink};
use super::{EndFacts, Error, RunDirectory, Summary, runs_csv, scope, servers, staleness, trial_rows};
use crate::plan::timeline::{index_at, nanos};
use crate::snapshot::{Event, Totals};

/// Everything that is open while a trial runs.
pub(crate) struct Recording {
    directory: RunDirectory,
    facts: TrialFacts,
    sums: Accumulated,
    intervals: CsvFile,
    servers: CsvFile,
    events: CsvFile,
    dead_letters: DeadLetterFile,
    log: HistogramLog,
    ended: EndTables,
    /// Of a shard: what it is to be merged by.
    shard: Option<ShardLog>,
}

impl Recording {
    /// Opens all files.
    pub fn start(directory: &RunDirectory, facts: TrialFacts) -> Result<Self, Error> {
        let server_columns: Vec<String> =
            columns::<ServerRow<'_>>().into_iter().chain(servers::counter_columns()).collect();
        Ok(Self {
            intervals: CsvFile::open(directory.file("intervals.csv"), &columns::<IntervalRow<'_>>())?,
            servers: CsvFile::open(directory.file("servers.csv"), &server_columns)?,
            events: CsvFile::open(directory.file("events.csv"), &columns::<EventRow<'_>>())?,
            dead_letters: DeadLetterFile::new(directory.file(dead_letters::FILE)),
            log: HistogramLog::open(directory.file("latency.hlog"), facts.go)?,
            ended: EndTables::open(directory, &facts)?,
            shard: facts
                .plan
                .shard
                .map(|_| ShardLog::start(directory.file(FILE), Begin::here(directory.id(), &facts)))
                .transpose()?,
            sums: Accumulated::new(&facts.plan),
            directory: directory.clone(),
            facts,
        })
    }

    fn own_event(&mut self, at_ns: u64, kind: &str, detail: String) -> Result<(), Error> {
        let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
        self.event_row(&Event { at_ns, kind: kind.to_owned(), subject: String::new(), detail })
    }

    fn event_row(&mut self, event: &Event) -> Result<(), Error> {
        // What happens before Go is put with the warm-up, which starts there.
        let segment = &self.sums.segments[index_at(&self.sums.segments, event.at_ns.try_into().unwrap_or(0))];
        self.events.row(EventRow {
            run_id: self.directory.id(),
            trial: self.facts.trial,
            variant: &self.facts.variant,
            timestamp: &format!("{:.3}", self.facts.time_at(event.at_ns)),
            elapsed_s: signed_seconds(event.at_ns),
            phase: segment.phase.name(),
            segment: &segment.name,
            kind: &event.kind,
            subject: &event.subject,
            detail: &event.detail,
        })?;
        self.events.flush()
    }
}

impl Sink for Recording {
    type Output = Summary;

    fn interval(&mut self, batch: Batch) -> Result<(), Error> {
        let snapshot = &batch.snapshot;
        let end_ns = i64::try_from(snapshot.end_ns).unwrap_or(i64::MAX);
        let timestamp = format!("{:.3}", self.facts.time_at(end_ns));
        let interval = Interval {
            run_id: self.directory.id(),
            facts: &self.facts,
            snapshot,
            segment: self.sums.segment_of(snapshot),
            timestamp: &timestamp,
            open: &self.sums.open,
        };
        intervals::for_each_row(interval, |row| self.intervals.row(row))?;
        self.intervals.flush()?;
        for row in servers::rows(interval, &batch.servers) {
            self.servers.row(row)?;
        }
        self.servers.flush()?;
        self.dead_letters.add(&self.facts, &snapshot.dead_letters)?;
        for (&(segment, operation), stats) in &snapshot.cells {
            let segment = self.sums.segments.get(segment).map(|s| &*s.name).unwrap_or_default();
            let operation = scope::tag(&Scope::Operation(operation).title(&self.facts.plan));
            self.log.add(self.facts.trial, segment, &operation, stats);
        }
        for (role, times) in staleness::by_role(&batch.servers) {
            self.log.add_staleness(self.facts.trial, &interval.segment.name, role, times);
        }
        self.log.advance(snapshot.end_ns)?;
        self.sums.add(&self.facts.plan, snapshot);
        self.sums.staleness.add(snapshot.segment, &batch.servers);
        match &mut self.shard {
            Some(log) => log.write(&Line::Interval(Box::new(batch))),
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        if let Some(log) = &mut self.shard {
            log.write(&Line::Event(event.clone()))?;
        }
        self.event_row(event)
    }

    fn abandon(&mut self) -> Result<(), Error> {
        self.log.flush()
    }

    fn finish(mut self, totals: Totals, mut end: EndFacts) -> Result<Summary, Error> {
        self.log.flush()?;
        if let Some(log) = &mut self.shard {
            let end = End { totals: totals.clone(), facts: end.clone() };
            log.write(&Line::End(Box::new(end)))?;
        }
        end.notes.extend(self.dead_letters.note());
        let id = self.directory.id().to_owned();
        let mut summary = Summary::new(id, self.facts.clone(), &self.sums, totals, end);
        if let Some(detail) = missed(&self.facts, summary.whole()) {
            let load = &self.facts.plan.load;
            let planned_ns = nanos(load.warmup.duration()) + nanos(load.duration.duration());
            self.own_event(planned_ns.min(self.sums.end_ns), "target_missed", detail)?;
        }
        self.ended.write(&summary, &self.sums)?;
        // The run's own files are whole: that a list of runs cannot be added to is worth a word, not the run.
        if let Err(error) = runs_csv::append(self.directory.root(), &trial_rows::runs(&summary)) {
            summary.notes.push(format!("this run is not in runs.csv: {error}"));
        }
        Ok(summary)
    }
}

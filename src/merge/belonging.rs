//! Whether directories are those of all shards of one load.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compare::Error;
use crate::plan::{Plan, Shard};
use crate::results::run_json::WHOLE;
use crate::results::runs_csv::RUNS;
use crate::results::shard_log::{Begin, End, FILE, Line, Lines, PROTOCOL};
use crate::results::tables::SCHEMA_VERSION;
use crate::snapshot::Event;

/// What a shard has left, but for its intervals.
pub(super) struct Stored {
    /// Where.
    pub directory: PathBuf,
    /// Which it is.
    pub shard: Shard,
    pub begin: Begin,
    pub events: Vec<Event>,
    pub end: End,
    /// The profile as it was read.
    pub profile: Vec<u8>,
    /// Its part of run.json.
    pub told: Value,
}

/// All shards in their order, and the plan that they are parts of.
///
/// # Errors
/// When a directory is none of a shard that ended, or they are not the shards of one load, each once.
pub(super) fn load(directories: &[PathBuf]) -> Result<(Vec<Stored>, Plan), Error> {
    // A pattern for all of a place's runs takes their list with them.
    let directories = directories.iter().filter(|path| !path.ends_with(RUNS));
    let read = directories.map(|directory| stored(directory)).collect::<Result<Vec<_>, _>>()?;
    let shards = complete(read)?;
    let plans: Vec<Plan> = shards.iter().map(|shard| shard.begin.facts.plan.clone()).collect();
    match Plan::whole(&plans) {
        Some(plan) => Ok((shards, plan)),
        None => Err(Error::asked(unlike(&shards))),
    }
}

fn stored(directory: &Path) -> Result<Stored, Error> {
    let shown = directory.display();
    let path = directory.join(FILE);
    if !path.is_file() {
        return Err(Error::asked(if directory.is_dir() {
            format!(
                "'{shown}' has no {FILE}, so it is no shard's: give the directories that `overdrive run --shard` has made"
            )
        } else {
            format!("'{shown}' is no directory: give those that `overdrive run --shard` has made")
        }));
    }
    let failed = |what: String| Error::stored(what);
    let mut lines = Lines::open(&path).map_err(failed)?;
    let Some(Line::Begin(begin)) = lines.next(false).map_err(|what| other_version(&path, what))? else {
        return Err(Error::stored(format!("'{}' does not begin as a shard's file does", path.display())));
    };
    if (begin.protocol, begin.schema_version) != (PROTOCOL, SCHEMA_VERSION) {
        return Err(Error::stored(format!(
            "'{shown}' was made by overdrive {}, whose files are others (version {}.{}, this one knows {}.{}): merge with \
             that one",
            begin.tool_version, begin.schema_version, begin.protocol, SCHEMA_VERSION, PROTOCOL
        )));
    }
    let Some(shard) = begin.facts.plan.shard else {
        return Err(Error::stored(format!("'{}' does not say which shard it is of", path.display())));
    };
    let (mut events, mut end) = (Vec::new(), None);
    while let Some(line) = lines.next(false).map_err(failed)? {
        match line {
            Line::Event(event) => events.push(event),
            Line::End(told) => end = Some(*told),
            Line::Begin(_) | Line::Interval(_) => {}
        }
    }
    let run = directory.join(WHOLE);
    let (Some(end), true) = (end, run.is_file()) else {
        return Err(Error::asked(format!(
            "'{shown}' (shard {shard}) did not come to its end: its run failed, was killed or still goes on. A load without \
             one of its parts is another load: run all shards anew"
        )));
    };
    let text = std::fs::read(&run).map_err(|e| Error::file(&run, e))?;
    let mut run: Value = serde_json::from_slice(&text).map_err(|e| Error::file(&run, e))?;
    let profile = directory.join("profile.toml");
    let profile = std::fs::read(&profile).map_err(|e| Error::file(&profile, e))?;
    let told = run["trials"][0].take();
    Ok(Stored { directory: directory.to_owned(), shard, begin: *begin, events, end, profile, told })
}

/// What cannot be understood may be of a version that tells more.
fn other_version(path: &Path, what: String) -> Error {
    /// All that any version's first line has.
    #[derive(serde::Deserialize)]
    struct First {
        begin: Version,
    }
    #[derive(serde::Deserialize)]
    struct Version {
        protocol: u32,
        tool_version: String,
    }
    let first = std::fs::read_to_string(path).ok();
    let first = first.as_deref().and_then(|text| text.lines().next());
    match first.and_then(|line| serde_json::from_str::<First>(line).ok()) {
        Some(First { begin }) if begin.protocol != PROTOCOL => Error::stored(format!(
            "'{}' was made by overdrive {}, whose files are others: merge with that one",
            path.display(),
            begin.tool_version
        )),
        _ => Error::stored(what),
    }
}

/// In their order, when each is there once and all are of one load.
fn complete(read: Vec<Stored>) -> Result<Vec<Stored>, Error> {
    let mut shards: BTreeMap<u32, Stored> = BTreeMap::new();
    for stored in read {
        if let Some(first) = shards.values().next()
            && let Some(what) = foreign(first, &stored)
        {
            return Err(Error::asked(format!(
                "'{}' and '{}' are not shards of one load: {what}",
                first.directory.display(),
                stored.directory.display()
            )));
        }
        if let Some(twice) = shards.get(&stored.shard.index) {
            return Err(Error::asked(format!(
                "shard {} is there twice, in '{}' and '{}': leave one of them out",
                stored.shard,
                twice.directory.display(),
                stored.directory.display()
            )));
        }
        shards.insert(stored.shard.index, stored);
    }
    let count = shards.values().next().map_or(0, |stored| stored.shard.count);
    let missing: Vec<String> = (0..count)
        .filter(|index| !shards.contains_key(index))
        .map(|index| format!("{index}/{count}"))
        .collect();
    if !missing.is_empty() {
        let (verb, what) =
            if missing.len() == 1 { ("is", "its directory") } else { ("are", "their directories") };
        return Err(Error::asked(format!(
            "of {count} shards {} {verb} missing: give {what}, too",
            missing.join(", ")
        )));
    }
    Ok(shards.into_values().collect())
}

/// Why two shards are not of one load; `None` when they may be.
fn foreign(a: &Stored, b: &Stored) -> Option<String> {
    let (ours, theirs) = (&a.begin.facts, &b.begin.facts);
    let start =
        |shard: Shard| shard.start_at.map_or_else(|| "no time in particular".to_owned(), |at| at.to_string());
    if a.shard.count != b.shard.count {
        Some(format!("they are of {} and of {} shards", a.shard.count, b.shard.count))
    } else if a.profile != b.profile {
        Some("their profiles differ".to_owned())
    } else if a.shard.start_at != b.shard.start_at {
        Some(format!("they began at {} and at {}", start(a.shard), start(b.shard)))
    } else if ours.driver != theirs.driver {
        let shown =
            |begin: &crate::results::TrialFacts| format!("{} {}", begin.driver.name, begin.driver.version);
        Some(format!(
            "their drivers are {} and {}, which retry and back off each in its way, so that their figures together are \
             nobody's: run all shards with one",
            shown(ours),
            shown(theirs)
        ))
    } else if (ours.trial, &ours.variant, &ours.params) != (theirs.trial, &theirs.variant, &theirs.params) {
        Some(format!("other options were set ({} and {})", ours.variant, theirs.variant))
    } else {
        None
    }
}

/// In what plans differ that do not make a whole.
fn unlike(shards: &[Stored]) -> String {
    let plan = |shard: &Stored| serde_json::to_value(&shard.begin.facts.plan).unwrap_or_default();
    let first = plan(&shards[0]);
    let own = ["load", "shard"];
    for other in &shards[1..] {
        let theirs = plan(other);
        let keys = first.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
        if let Some(key) = keys.into_iter().find(|key| !own.contains(key) && first[*key] != theirs[*key]) {
            return format!(
                "'{}' and '{}' are not shards of one load: `{key}` differs",
                shards[0].directory.display(),
                other.directory.display()
            );
        }
    }
    format!(
        "the loads of these {} shards do not sum to one: were they all run with the same rate, workers and duration?",
        shards.len()
    )
}

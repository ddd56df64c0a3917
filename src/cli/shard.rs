//! `--shard` and `--start-at` on the command line.

use std::str::FromStr;

use clap::Args;
use jiff::Timestamp;

use crate::plan::shard::MOST_SHARDS;

/// One part of a load that several processes make.
#[derive(Debug, Args)]
pub struct ShardArgs {
    /// Make one of N parts of the load, which other processes or machines make the rest of: part I, counted from 0, like
    /// 0/4. Without I, as in /4, it is $JOB_COMPLETION_INDEX, which Kubernetes sets in an Indexed Job. `overdrive merge`
    /// joins what they leave
    #[arg(long, value_name = "[I]/N")]
    pub shard: Option<ShardArg>,
    /// When the load of all shards begins, the data being there by then: a time like 2026-01-31T12:00:00Z, or the seconds
    /// since 1970 that `date +%s -d '2 minutes'` prints
    #[arg(long, value_name = "TIME", value_parser = start_at, requires = "shard")]
    pub start_at: Option<Timestamp>,
}

/// `I/N`, or `/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardArg {
    /// From 0, below the count; `None` when the surroundings are to say.
    pub index: Option<u32>,
    /// At least one.
    pub count: u32,
}

impl FromStr for ShardArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            || format!("'{text}' is no shard: write I/N, counted from 0, like 0/4 for the first of four");
        let (index, count) = text.split_once('/').ok_or_else(form)?;
        let count: u32 = count.parse().map_err(|_| form())?;
        if !(1..=MOST_SHARDS).contains(&count) {
            return Err(format!("a load has 1 to {MOST_SHARDS} shards, not {count}"));
        }
        let index = match index {
            "" => None,
            index => Some(index.parse().map_err(|_| form())?),
        };
        match index {
            Some(index) => in_bounds(index, count).map(|index| Self { index: Some(index), count }),
            None => Ok(Self { index: None, count }),
        }
    }
}

/// The number of a shard, if there is such a one.
///
/// # Errors
/// When there are not so many.
pub fn in_bounds(index: u32, count: u32) -> Result<u32, String> {
    if index < count {
        return Ok(index);
    }
    Err(format!(
        "there is no shard {index} of {count}: they are counted from 0, so 0/{count} to {}/{count}",
        count - 1
    ))
}

fn start_at(text: &str) -> Result<Timestamp, String> {
    let wrong = || {
        format!(
            "'{text}' is no time: write one with its zone, like 2026-01-31T12:00:00Z, or the seconds since 1970, which \
             `date +%s -d '2 minutes'` prints"
        )
    };
    match text.parse::<i64>() {
        Ok(seconds) => Timestamp::from_second(seconds).map_err(|_| wrong()),
        Err(_) => text.parse().map_err(|_| wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_from_0() {
        let parsed = |text: &str| text.parse::<ShardArg>();
        assert_eq!(parsed("0/4"), Ok(ShardArg { index: Some(0), count: 4 }));
        assert_eq!(parsed("3/4"), Ok(ShardArg { index: Some(3), count: 4 }));
        assert_eq!(parsed("/4"), Ok(ShardArg { index: None, count: 4 }));
        for (text, part) in [
            ("4/4", "0/4 to 3/4"),
            ("1", "like 0/4"),
            ("a/4", "like 0/4"),
            ("-1/4", "like 0/4"),
            ("0/", "like 0/4"),
            ("0/0", "1 to 1000"),
            ("0/1001", "1 to 1000"),
        ] {
            assert!(parsed(text).unwrap_err().contains(part), "{text}: {:?}", parsed(text));
        }
    }

    #[test]
    fn a_start_is_a_time_or_seconds() {
        let noon = start_at("2026-01-31T12:00:00Z").unwrap();
        assert_eq!(start_at("2026-01-31T13:00:00+01:00"), Ok(noon));
        assert_eq!(start_at(&noon.as_second().to_string()), Ok(noon));
        for text in ["12:00", "2026-01-31T12:00:00", "tomorrow", "", "99999999999999999"] {
            assert!(start_at(text).unwrap_err().contains("date +%s"), "{text}");
        }
    }
}

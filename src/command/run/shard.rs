//! Which part of a load a run is to make, when others make the rest.

use jiff::{SignedDuration, Timestamp};

use crate::cli::{RunArgs, ShardArg, shard_in_bounds};
use crate::command::UsageError;
use crate::merge::NOTE;
use crate::plan::Shard;
use crate::units::Span;

/// What an Indexed Job of Kubernetes calls the number of a pod, from 0.
const VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// No load is begun later than this: a time that is further off is one in other units.
const FURTHEST: SignedDuration = SignedDuration::from_hours(24);

/// The shard that the arguments ask for; `None` when they ask for the whole.
///
/// # Errors
/// When there is no such one, or it does not go with what else is asked for.
pub fn asked_for(args: &RunArgs) -> Result<Option<Shard>, UsageError> {
    let Some(wanted) = args.shard.shard else { return Ok(None) };
    let number = std::env::var(VARIABLE).ok();
    let shard = resolved(wanted, args.shard.start_at, number.as_deref(), Timestamp::now());
    let shard = shard.map_err(|what| UsageError::new(format!("--shard: {what}")))?;
    match beside(args, shard) {
        Some(what) => Err(UsageError::new(format!("--shard {shard}: {what}"))),
        None => Ok(Some(shard)),
    }
}

/// What people should read beside the numbers of one that is not alone.
pub fn note(shard: Shard) -> Option<String> {
    shard.is_part().then(|| {
        format!(
            "{NOTE}{shard}: these are the figures of a part of the load; `overdrive merge` joins all of them, and judges \
             thresholds"
        )
    })
}

/// A word for the run's directory, so that a pattern finds the shards of a load.
pub fn label(shard: Shard, given: Option<&str>) -> String {
    let own = format!("shard-{}-of-{}", shard.index, shard.count);
    given.map_or_else(|| own.clone(), |given| format!("{given}-{own}"))
}

/// What a shard cannot be together with.
fn beside(args: &RunArgs, shard: Shard) -> Option<&'static str> {
    let trials = args.vary.iter().map(|varied| varied.values.len()).product::<usize>();
    if trials > 1 || args.repeat > 1 {
        Some(
            "all shards begin a trial together, and only one is told when: run and merge one after the other, each with \
             --set KEY=VALUE and a --start-at of its own",
        )
    } else if !args.find_max.is_empty() {
        Some(
            "--find-max chooses the next rate by what the whole load came to, which no shard knows: merge a run at each rate",
        )
    } else if args.resume.is_some() {
        Some(
            "--resume goes on with a run of several trials, and a shard is one of a single trial: run all of them anew",
        )
    } else if args.stub.is_some() && shard.is_part() {
        Some(
            "each would load a stub of its own, and together they are to load one deployment: name it with --uri",
        )
    } else {
        None
    }
}

fn resolved(
    wanted: ShardArg,
    start_at: Option<Timestamp>,
    number: Option<&str>,
    now: Timestamp,
) -> Result<Shard, String> {
    let count = wanted.count;
    let index = match (wanted.index, number) {
        (Some(index), _) => index,
        (None, None) => {
            return Err(format!(
                "/{count} takes the shard's number from ${VARIABLE}, which is not set: write it, from 0/{count} to \
                 {}/{count}",
                count - 1
            ));
        }
        (None, Some(number)) => {
            let index = number.parse().map_err(|_| {
                format!("${VARIABLE} is '{number}', which is no number from 0 to {}", count - 1)
            })?;
            shard_in_bounds(index, count).map_err(|what| format!("${VARIABLE}: {what}"))?
        }
    };
    let Some(time) = start_at else {
        if count == 1 {
            return Ok(Shard { index, count, start_at });
        }
        return Err(format!(
            "{count} shards have to begin at the same moment: give all of them the same --start-at, like \
             --start-at $(date +%s -d '2 minutes')"
        ));
    };
    let left = time.duration_since(now);
    let told = |length: SignedDuration| Span::seconds(length.unsigned_abs().as_secs());
    if left.is_negative() {
        return Err(format!("--start-at {time} was {} ago: give all shards a later one", told(left)));
    }
    if left > FURTHEST {
        return Err(format!(
            "--start-at {time} is {} away: is that the time that was meant? A load begins within {}",
            told(left),
            told(FURTHEST)
        ));
    }
    Ok(Shard { index, count, start_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn told(text: &str, start_at: Option<i64>, number: Option<&str>) -> Result<(u32, u32), String> {
        let shard = resolved(text.parse().unwrap(), start_at.map(at), number, at(0))?;
        assert_eq!(shard.start_at, start_at.map(at));
        Ok((shard.index, shard.count))
    }

    #[test]
    fn the_number_is_written_or_the_jobs() {
        assert_eq!(told("2/4", Some(60), None), Ok((2, 4)));
        assert_eq!(told("2/4", Some(60), Some("3")), Ok((2, 4)), "what is written counts");
        assert_eq!(told("/4", Some(60), Some("3")), Ok((3, 4)));
        assert_eq!(told("0/1", None, None), Ok((0, 1)));
        for (number, part) in
            [(None, "0/4 to 3/4"), (Some("4"), "0/4 to 3/4"), (Some("x"), "no number from 0 to 3")]
        {
            let error = told("/4", Some(60), number).unwrap_err();
            assert!(error.contains("JOB_COMPLETION_INDEX") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_start_is_in_the_near_future() {
        assert!(told("0/2", None, None).unwrap_err().contains("date +%s"));
        let late = told("0/2", Some(-75), None).unwrap_err();
        assert!(late.contains("was 1m15s ago"), "{late}");
        let far = told("0/2", Some(172_800), None).unwrap_err();
        assert!(far.contains("48h away"), "{far}");
        assert_eq!(told("0/2", Some(86_400), None), Ok((0, 2)));
    }

    #[test]
    fn directories_tell_which_shard_they_are_of() {
        let shard = Shard { index: 1, count: 4, start_at: None };
        assert_eq!(label(shard, None), "shard-1-of-4");
        assert_eq!(label(shard, Some("old")), "old-shard-1-of-4");
        assert_eq!(note(Shard { index: 0, count: 1, start_at: None }), None);
    }
}

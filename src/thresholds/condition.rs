//! A figure held against a limit: `latency_p99 > 50ms`, `segment.after.op.read.error_rate <= 1%`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::metric::{Metric, Unit};
use crate::units::{Percent, Rate, Span};

/// What stands for all segments or operations together, as it does in files.
pub const ALL: &str = "all";

/// What a condition looks like.
const SYNTAX: &str =
    "[segment.NAME.][client.NAME.][op.NAME.]METRIC < LIMIT, with < <= > or >=, like latency_p99 > 50ms";

/// A figure of a trial, held against a limit. It is data alone: whom it belongs to says what it is good for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    /// The measured segment whose figure it is; `all` for the whole measured time.
    pub segment: String,
    /// The client whose figure it is; `all` for all together, and for the only one there is.
    pub client: String,
    /// The operation whose figure it is; `all` for all together.
    pub op: String,
    /// Which figure.
    pub metric: Metric,
    /// On which side of the limit it has to be.
    pub comparison: Comparison,
    /// The limit, in the metric's unit.
    pub limit: f64,
    /// The limit as it was written.
    written: String,
}

/// How a figure is held against a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    /// What is wrong; of a name without what would be right.
    pub message: String,
    /// The part of the text that it is about.
    pub part: String,
    /// The names that could stand there; empty when it is about no name.
    pub known: Vec<String>,
}

impl Mistake {
    fn new(part: &str, message: impl Into<String>) -> Self {
        Self { message: message.into(), part: part.to_owned(), known: Vec::new() }
    }

    /// A name that is not known.
    pub fn unknown<'a>(
        part: &str,
        message: impl Into<String>,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self { known: known.into_iter().map(str::to_owned).collect(), ..Self::new(part, message) }
    }
}

impl Comparison {
    /// Those of two characters first: the others are what they begin with.
    const ALL: [Self; 4] = [Self::AtMost, Self::AtLeast, Self::Below, Self::Above];

    const fn sign(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }

    /// Whether a value is on the right side of a limit.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
        }
    }
}

impl FromStr for Condition {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let text = text.trim();
        let Some(at) = text.find(['<', '>', '=', '!']) else {
            return Err(Mistake::new(text, format!("'{text}' compares nothing: write {SYNTAX}")));
        };
        let (figure, rest) = text.split_at(at);
        let found = Comparison::ALL.into_iter().find_map(|c| Some((c, rest.strip_prefix(c.sign())?)));
        let Some((comparison, limit)) = found else {
            return Err(Mistake::new(rest, format!("'{rest}' is no comparison: write {SYNTAX}")));
        };
        let mut name = figure.trim_end();
        let segment = scope(&mut name, "segment.");
        let client = scope(&mut name, "client.");
        let op = scope(&mut name, "op.");
        let metric = Metric::named(name).ok_or_else(|| {
            let known = Metric::all().map(Metric::short);
            Mistake::unknown(name, format!("there is no metric `{name}`"), known)
        })?;
        // Each client has its own part of being behind.
        let of_client = if metric == Metric::BehindMaxMs { ALL } else { client };
        let part = [("client", of_client), ("op", op)].into_iter().find(|(_, part)| *part != ALL);
        if let (true, Some((kind, part))) = (metric.is_of_generator(), part) {
            let message = format!(
                "`{name}` is the load generator's as a whole, so `{part}` has none: leave {kind}.{part}. out"
            );
            return Err(Mistake::new(figure.trim_end(), message));
        }
        let written = limit.trim();
        let limit = limit_of(metric, written)
            .map_err(|why| Mistake::new(written, format!("the limit of `{name}`: {why}")))?;
        Ok(Self {
            segment: segment.to_owned(),
            client: client.to_owned(),
            op: op.to_owned(),
            metric,
            comparison,
            limit,
            written: written.to_owned(),
        })
    }
}

/// Takes `segment.NAME.`, `client.NAME.` or `op.NAME.` off the front. Names have no dots in them.
fn scope<'t>(rest: &mut &'t str, prefix: &str) -> &'t str {
    let Some((name, after)) = rest.strip_prefix(prefix).and_then(|rest| rest.split_once('.')) else {
        return ALL;
    };
    *rest = after;
    name
}

/// A limit in the metric's unit, rounded where the metric itself is, so that equal ones are equal.
#[expect(clippy::cast_precision_loss, reason = "a year in nanoseconds needs no more digits here")]
fn limit_of(metric: Metric, text: &str) -> Result<f64, String> {
    let nanos = || {
        let span = text.parse::<Span>().map_err(|error| error.to_string())?;
        Ok::<_, String>(span.duration().as_nanos() as f64)
    };
    match metric.unit() {
        // Nothing at all is no rate that can be had, but one that can be seen.
        Unit::PerSecond if ["0", "0/s"].contains(&text) => Ok(0.0),
        Unit::PerSecond => text.parse::<Rate>().map(Rate::get).map_err(|e| e.to_string()),
        Unit::Share => text.parse::<Percent>().map(Percent::share).map_err(|e| e.to_string()),
        Unit::Microseconds => nanos().map(|nanos| nanos / 1e3),
        Unit::Milliseconds => nanos().map(|nanos| nanos / 1e6),
        Unit::Quotient | Unit::Count => match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
            _ => Err(format!("'{text}' is no number from 0 on")),
        },
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, name) in [("segment", &self.segment), ("client", &self.client), ("op", &self.op)] {
            if name != ALL {
                write!(f, "{kind}.{name}.")?;
            }
        }
        write!(f, "{} {} {}", self.metric.short(), self.comparison.sign(), self.written)
    }
}

impl TryFrom<String> for Condition {
    type Error = Mistake;

    fn try_from(text: String) -> Result<Self, Mistake> {
        text.parse()
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Condition {
        text.parse().unwrap_or_else(|mistake| panic!("{text}: {mistake}"))
    }

    #[test]
    fn a_condition_is_a_figure_a_comparison_and_a_limit() {
        for (text, segment, op, metric, comparison, limit, shown) in [
            (
                "latency_p99>50ms",
                "all",
                "all",
                Metric::LatencyP99Us,
                Comparison::Above,
                50_000.0,
                "latency_p99 > 50ms",
            ),
            (
                "latency_p99_9_us <= 1m 30s",
                "all",
                "all",
                Metric::LatencyP999Us,
                Comparison::AtMost,
                9e7,
                "latency_p99_9 <= 1m 30s",
            ),
            (
                " error_rate  >=  0.7 % ",
                "all",
                "all",
                Metric::ErrorRate,
                Comparison::AtLeast,
                0.007,
                "error_rate >= 0.7 %",
            ),
            (
                "op.read.goodput < 1.5k/s",
                "all",
                "read",
                Metric::GoodputOpsPerS,
                Comparison::Below,
                1500.0,
                "op.read.goodput < 1.5k/s",
            ),
            (
                "segment.a+b.retries_per_op > 2",
                "a+b",
                "all",
                Metric::RetriesPerOp,
                Comparison::Above,
                2.0,
                "segment.a+b.retries_per_op > 2",
            ),
            (
                "segment.after.op.x-1.ops_failed > 0",
                "after",
                "x-1",
                Metric::OpsFailed,
                Comparison::Above,
                0.0,
                "segment.after.op.x-1.ops_failed > 0",
            ),
            (
                "segment.all.op.all.goodput <= 0/s",
                "all",
                "all",
                Metric::GoodputOpsPerS,
                Comparison::AtMost,
                0.0,
                "goodput <= 0/s",
            ),
            (
                "behind_max > 1s",
                "all",
                "all",
                Metric::BehindMaxMs,
                Comparison::Above,
                1000.0,
                "behind_max > 1s",
            ),
            (
                "cpu_per_op > 80us",
                "all",
                "all",
                Metric::CpuUsPerOp,
                Comparison::Above,
                80.0,
                "cpu_per_op > 80us",
            ),
        ] {
            let written = shown.rsplit_once(['<', '>', '=']).unwrap().1.trim().to_owned();
            let (segment, op) = (segment.to_owned(), op.to_owned());
            let client = ALL.to_owned();
            let wanted = Condition { segment, client, op, metric, comparison, limit, written };
            assert_eq!(read(text), wanted, "{text}");
            assert_eq!((wanted.to_string().as_str(), read(shown)), (shown, wanted));
        }
    }

    #[test]
    fn percentages_equal_the_shares_that_are_stored() {
        for tenths in 0..=1000_u32 {
            let condition = read(&format!("loss_rate > {}%", f64::from(tenths) / 10.0));
            assert_eq!(condition.limit, f64::from(tenths) / 1000.0, "{condition}");
        }
    }

    #[test]
    fn each_comparison_says_what_its_sign_says() {
        let held = |sign: &str| {
            let comparison = read(&format!("amplification {sign} 2")).comparison;
            [1.0, 2.0, 3.0].map(|value| comparison.holds(value, 2.0))
        };
        assert_eq!(held("<"), [true, false, false]);
        assert_eq!(held("<="), [true, true, false]);
        assert_eq!(held(">"), [false, false, true]);
        assert_eq!(held(">="), [false, true, true]);
    }

    #[test]
    fn what_is_no_condition_is_told_with_the_part_that_is_wrong() {
        for (text, part, told) in [
            ("", "", "compares nothing"),
            ("latency_p99", "latency_p99", "like latency_p99 > 50ms"),
            ("latency_p99 == 50ms", "== 50ms", "is no comparison"),
            ("latency_p99 => 50ms", "=> 50ms", "is no comparison"),
            ("latncy_p99 > 50ms", "latncy_p99", "there is no metric `latncy_p99`"),
            ("op.read.p99 > 50ms", "p99", "there is no metric `p99`"),
            ("op.read > 50ms", "op.read", "there is no metric `op.read`"),
            ("op.read.segment.a.goodput > 5", "segment.a.goodput", "there is no metric"),
            ("latency_p99 > 50", "50", "write 50s, 50ms or 50m"),
            ("latency_p99 > ", "", "no length of time"),
            ("latency_p99 > -1s", "-1s", "negative"),
            ("error_rate > 1", "1", "like 2%"),
            ("error_rate > 101%", "101%", "from 0% to 100%"),
            ("goodput < fast", "fast", "is no rate"),
            ("amplification > NaN", "NaN", "is no number"),
            ("ops_failed > 1ms", "1ms", "is no number"),
            ("op.read.cpu_per_op > 1ms", "op.read.cpu_per_op", "leave op.read. out"),
        ] {
            let mistake = text.parse::<Condition>().unwrap_err();
            assert_eq!(mistake.part, part, "{text}: {mistake}");
            assert!(mistake.message.contains(told), "{text}: {mistake}");
            assert_eq!(mistake.known.is_empty(), !told.starts_with("there is no metric"), "{text}");
        }
    }

    #[test]
    fn it_travels_as_text() {
        let text = "\"segment.after.op.read.latency_p99 > 50ms\"";
        let condition: Condition = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&condition).unwrap(), text);
        assert!(serde_json::from_str::<Condition>("\"p99\"").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", figure in "(segment\\.|op\\.)?[a-z.]{0,9}goodput", limit in ".*") {
            let _ = text.parse::<Condition>();
            let _ = format!("{figure} < {limit}").parse::<Condition>();
        }
    }
}

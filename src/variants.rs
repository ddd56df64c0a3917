//! The trials of a run: every combination of what varies, so often, in an order that meets drift evenly.

use std::str::FromStr;

/// `KEY=A,B,…`: what one `--vary` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varied {
    /// A connection-string option, or a key of the profile.
    pub key: String,
    /// Its values, each once; never empty.
    pub values: Vec<String>,
}

impl FromStr for Varied {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, values) = text
            .split_once('=')
            .filter(|(key, values)| !key.is_empty() && !values.is_empty())
            .ok_or("write KEY=A,B,…, like maxAdaptiveRetries=0,2,5")?;
        if key.contains("://") {
            return Err("a connection string goes to --uri".to_owned());
        }
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        for (i, value) in values.iter().enumerate() {
            if value.is_empty() {
                return Err(format!("a value of {key} is missing"));
            }
            if values[..i].contains(value) {
                return Err(format!("{key} has the value {value} twice"));
            }
        }
        Ok(Self { key: key.to_owned(), values })
    }
}

/// One combination of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name in files: `maxAdaptiveRetries=2 rate=500/s`; `base` when nothing varies.
    pub name: String,
    /// The values, by key.
    pub settings: Vec<(String, String)>,
}

/// One trial to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// 1, 2, 3 … in the order of running.
    pub trial: u32,
    /// The variant, by its position.
    pub variant: usize,
    /// 1, 2, 3 … among the trials of the same variant.
    pub repeat: u32,
}

impl Place {
    /// That of a run's only trial.
    pub const ONLY: Self = Self { trial: 1, variant: 0, repeat: 1 };
}

/// Every combination, the last key changing fastest.
pub fn variants(varied: &[Varied]) -> Vec<Variant> {
    let mut all = vec![Vec::new()];
    for Varied { key, values } in varied {
        all = all
            .into_iter()
            .flat_map(|settings: Vec<(String, String)>| {
                values.iter().map(move |value| {
                    let mut settings = settings.clone();
                    settings.push((key.clone(), value.clone()));
                    settings
                })
            })
            .collect();
    }
    all.into_iter().map(|settings| Variant { name: Variant::name(&settings), settings }).collect()
}

impl Variant {
    /// What a combination of values is called.
    pub fn name(settings: &[(String, String)]) -> String {
        if settings.is_empty() {
            return "base".to_owned();
        }
        settings.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }
}

/// The order of trials: A B B A A B … A machine, a cluster or a network that slowly gets better or worse does so for all
/// variants alike, which an order of A A A B B B would take for a difference between them.
pub fn order(variants: usize, repeats: u32) -> Vec<Place> {
    let mut places = Vec::new();
    let mut trial = 0;
    for repeat in 1..=repeats {
        let mut round: Vec<usize> = (0..variants).collect();
        if repeat % 2 == 0 {
            round.reverse();
        }
        for variant in round {
            trial += 1;
            places.push(Place { trial, variant, repeat });
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_a_variant() {
        let varied = ["maxAdaptiveRetries=0,2", "rate=100/s, 200/s"].map(|text| text.parse().unwrap());
        let names: Vec<String> = variants(&varied).into_iter().map(|variant| variant.name).collect();
        assert_eq!(
            names,
            [
                "maxAdaptiveRetries=0 rate=100/s",
                "maxAdaptiveRetries=0 rate=200/s",
                "maxAdaptiveRetries=2 rate=100/s",
                "maxAdaptiveRetries=2 rate=200/s",
            ]
        );
        let base = variants(&[]);
        assert_eq!((base.len(), &*base[0].name, base[0].settings.len()), (1, "base", 0));
    }

    #[test]
    fn what_is_no_variation_is_told() {
        for (text, part) in [
            ("maxAdaptiveRetries", "KEY=A,B"),
            ("=1", "KEY=A,B"),
            ("a=", "KEY=A,B"),
            ("a=1,,2", "missing"),
            ("a=1,2,1", "twice"),
            ("mongodb://u:p@h/?a=1", "--uri"),
        ] {
            let error = text.parse::<Varied>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn trials_go_there_and_back() {
        let order = order(3, 3);
        let variants: Vec<usize> = order.iter().map(|place| place.variant).collect();
        assert_eq!(variants, [0, 1, 2, 2, 1, 0, 0, 1, 2]);
        let trials: Vec<u32> = order.iter().map(|place| place.trial).collect();
        assert_eq!(trials, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // Each variant's places have the same mean but for the last round of an odd number.
        let sum = |of: usize| order[..6].iter().filter(|p| p.variant == of).map(|p| p.trial).sum::<u32>();
        assert_eq!([sum(0), sum(1), sum(2)], [7, 7, 7]);
        assert_eq!(order[5], Place { trial: 6, variant: 0, repeat: 2 });
    }
}

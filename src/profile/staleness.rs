//! `[staleness]`: the probe that asks how old what reads see is.

use crate::plan::Staleness;
use crate::plan::staleness::SHORTEST_PERIOD;
use crate::units::Span;

use super::reader::Table;

/// Reads `[staleness]`; without one there is no probe.
pub fn read(root: &mut Table<'_>) -> Option<Staleness> {
    let mut table = root.table("staleness")?;
    let every = table.quantity::<Span>("every");
    if table.key_span("every").is_none() {
        table.missing("every");
    }
    if let Some(every) = &every
        && let Err(message) = check_every(*every.get_ref())
    {
        table.wrong(every.span(), format!("`staleness.every` {message}"));
    }
    table.finish();
    every.map(|every| Staleness { every: every.into_inner() })
}

/// Whether the probe may have this period.
///
/// # Errors
/// Why it may not; the key's name is to stand before it.
pub fn check_every(every: Span) -> Result<(), String> {
    if every.duration() < SHORTEST_PERIOD {
        return Err(format!("must be at least {}", Span::from(SHORTEST_PERIOD)));
    }
    Ok(())
}

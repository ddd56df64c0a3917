//! Bars that grow upwards.

use ratatui::buffer::Buffer;
use ratatui::style::Style;

/// Where a bar stands: its column, the row below its foot, and how high it may be.
#[derive(Clone, Copy)]
pub struct Place {
    /// Its column.
    pub x: u16,
    /// The row below its foot.
    pub bottom: u16,
    /// The rows it may take.
    pub height: u16,
}

/// Draws a share (0 to 1) of the height, as fine as the parts of a cell allow; something is never nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the height in parts"
)]
pub fn column(buffer: &mut Buffer, place: Place, share: f64, parts: &[&str], style: Style) {
    let (Ok(fine), Some(whole)) = (u16::try_from(parts.len()), parts.last()) else { return };
    if share <= 0.0 || fine == 0 {
        return;
    }
    let grain = f64::from(place.height * fine) * share.min(1.0);
    let grains = (grain.round() as u16).max(1);
    for row in 0..place.height.min(grains.div_ceil(fine)) {
        let rest = grains - row * fine;
        let part = if rest >= fine { whole } else { parts[usize::from(rest - 1)] };
        if let Some(cell) = buffer.cell_mut((place.x, place.bottom - 1 - row)) {
            cell.set_symbol(part).set_style(style);
        }
    }
}

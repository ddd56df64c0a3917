//! `search.csv`: a row for each trial of a search, written when it has ended.

use super::csv_file::{CsvFile, columns};
use super::tables::SearchRow;
use super::{Error, RunDirectory};

impl RunDirectory {
    /// Adds a row to `search.csv`, which is there from the first one on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_to_search(&self, row: &SearchRow) -> Result<(), Error> {
        let mut file = CsvFile::open(self.file("search.csv"), &columns::<SearchRow>())?;
        file.row(row)?;
        file.flush()
    }
}

//! All that a spool changes on the disk. Each returns when the disk has it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// A directory that nobody else can lock. A process that ends, however it does, gives the lock back.
#[derive(Debug)]
pub struct Directory(File);

impl Directory {
    /// Makes a directory if there is none, and locks it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when it is locked.
    pub fn lock(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let directory = File::open(path)?;
        flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        // The directory's own name is in the one above it.
        let above = path.canonicalize()?;
        File::open(above.parent().unwrap_or(&above))?.sync_all()?;
        Ok(Self(directory))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started holds a copy until it has become another program.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Opens a file that is there, to go on writing at its end.
pub fn reopen(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

/// Makes an empty file, to be written at its end.
pub fn create(directory: &Directory, path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create_new(true).open(path)?;
    changed();
    directory.0.sync_all()?;
    Ok(file)
}

/// Writes at a file's end.
pub fn append(file: &mut File, text: &[u8]) -> io::Result<()> {
    let written = file.write_all(text);
    changed();
    written?;
    file.sync_data()
}

/// Shortens a file.
pub fn cut(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)?;
    changed();
    file.sync_all()
}

/// Puts a text in the place of a file, wholly or not at all; what is at the path `draft` is lost.
pub fn replace(directory: &Directory, path: &Path, draft: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(draft)?;
    changed();
    file.write_all(text)?;
    changed();
    file.sync_all()?;
    fs::rename(draft, path)?;
    changed();
    directory.0.sync_all()
}

/// Removes a file.
pub fn remove(directory: &Directory, path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    changed();
    directory.0.sync_all()
}

/// After every change that the system has been asked for: what is there now is what a crash may leave.
fn changed() {
    #[cfg(test)]
    super::tests::disk_changed();
}

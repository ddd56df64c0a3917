//! Lines from somebody who may send anything: bounded in their length, and in how many there may be.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::trial::protocol::LONGEST_LINE;

/// The most lines within a second. A child that keeps to the protocol says two or three.
const MOST_A_SECOND: u32 = 1000;

/// The lines of a pipe.
pub struct Lines<R> {
    pipe: BufReader<R>,
    /// What has come of the next one.
    begun: Vec<u8>,
    second: Instant,
    within: u32,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Those of this pipe.
    pub fn new(pipe: R) -> Self {
        Self { pipe: BufReader::new(pipe), begun: Vec::new(), second: Instant::now(), within: 0 }
    }

    /// The next one, without its end; `None` at the end of the pipe. It may be dropped and called again.
    ///
    /// # Errors
    /// When it is too long, no text, cut off by the end, or there are too many of them.
    pub async fn next(&mut self) -> anyhow::Result<Option<String>> {
        loop {
            let come = self.pipe.fill_buf().await?;
            if come.is_empty() {
                ensure!(self.begun.is_empty(), "its last line has no end");
                return Ok(None);
            }
            let end = come.iter().position(|&byte| byte == b'\n');
            self.begun.extend_from_slice(&come[..end.unwrap_or(come.len())]);
            let used = end.map_or(come.len(), |end| end + 1);
            self.pipe.consume(used);
            ensure!(
                self.begun.len() <= LONGEST_LINE,
                "a line of it is longer than {} MiB",
                LONGEST_LINE >> 20
            );
            if end.is_some() {
                self.count()?;
                let line = String::from_utf8(std::mem::take(&mut self.begun));
                return Ok(Some(line.map_err(|_| anyhow::anyhow!("a line of it is no UTF-8"))?));
            }
        }
    }

    fn count(&mut self) -> anyhow::Result<()> {
        if self.second.elapsed() >= Duration::from_secs(1) {
            (self.second, self.within) = (Instant::now(), 0);
        }
        self.within += 1;
        if self.within > MOST_A_SECOND {
            bail!("it floods its output: more than {MOST_A_SECOND} lines within a second");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> (Vec<String>, String) {
        let mut lines = Lines::new(bytes);
        let mut read = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => read.push(line),
                Ok(None) => return (read, String::new()),
                Err(error) => return (read, error.to_string()),
            }
        }
    }

    #[tokio::test]
    async fn lines_are_taken_apart_wherever_the_pipe_cuts_them() {
        let long = "x".repeat(50_000);
        let (lines, error) = read(format!("a\n\n{long}\n").as_bytes()).await;
        assert_eq!((lines, &*error), (vec!["a".to_owned(), String::new(), long], ""));
    }

    #[tokio::test]
    async fn what_is_no_line_is_refused() {
        let error = async |bytes: &[u8]| read(bytes).await.1;
        assert_eq!(error(b"a\nb").await, "its last line has no end");
        assert_eq!(error(b"\xff\n").await, "a line of it is no UTF-8");
        assert_eq!(error(&vec![b'x'; LONGEST_LINE + 2]).await, "a line of it is longer than 16 MiB");
        assert!(error(&b"\n".repeat(100_000)).await.contains("floods"));
    }
}

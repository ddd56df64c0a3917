//! The protocol's compressors: enough to read a message's flags and to write short replies.

use std::io::{self, Read, Write};

use flate2::{Compression, Decompress, FlushDecompress};

/// How many compressed bytes are enough for the first four of any message: a whole block of zstd's with its headers,
/// before which that gives out nothing.
pub const PEEK: usize = 129 * 1024;

/// The largest window, as a power of two, that is set up to read four bytes. Drivers' windows are 2 MiB.
const LARGEST_WINDOW: u32 = 23;

/// A compressor that clients and servers agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    /// None, in a compressed message's wrapping.
    Noop,
    /// Snappy's raw format.
    Snappy,
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Compressor {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Noop, Self::Snappy, Self::Zlib, Self::Zstd];

    /// The number on the wire.
    pub const fn id(self) -> u8 {
        match self {
            Self::Noop => 0,
            Self::Snappy => 1,
            Self::Zlib => 2,
            Self::Zstd => 3,
        }
    }

    /// The compressor with this number.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|compressor| compressor.id() == id)
    }

    /// Compresses, at each compressor's usual level.
    ///
    /// # Errors
    /// When the library cannot, which only a lack of memory explains.
    pub fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Noop => Ok(bytes.to_vec()),
            Self::Snappy => snap::raw::Encoder::new().compress_vec(bytes).map_err(io::Error::other),
            Self::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Self::Zstd => zstd::encode_all(bytes, 0),
        }
    }

    /// The first four bytes of what was compressed, from the first [`PEEK`] bytes of what came of it. None if they are
    /// not to be had.
    pub fn peek(self, compressed: &[u8]) -> Option<[u8; 4]> {
        let mut beginning = [0; 4];
        match self {
            Self::Noop => return compressed.first_chunk().copied(),
            Self::Snappy => return peek_snappy(compressed),
            Self::Zlib => {
                let mut decompress = Decompress::new(true);
                decompress.decompress(compressed, &mut beginning, FlushDecompress::None).ok()?;
                (decompress.total_out() == 4).then_some(())?;
            }
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(compressed).ok()?;
                decoder.window_log_max(LARGEST_WINDOW).ok()?;
                decoder.read_exact(&mut beginning).ok()?;
            }
        }
        Some(beginning)
    }
}

/// Snappy's library wants a whole message, which may be 48 MB; its format needs no more than a few bytes: after the
/// uncompressed length come literals, and copies of what was there before.
fn peek_snappy(compressed: &[u8]) -> Option<[u8; 4]> {
    let mut bytes = compressed.iter().copied();
    bytes.find(|byte| byte & 0x80 == 0)?;
    let mut beginning = [0; 4];
    let mut have = 0;
    while have < 4 {
        let tag = bytes.next()?;
        let mut number = |bytes_long: u8| {
            (0..bytes_long).try_fold(0_usize, |sum, i| Some(sum | usize::from(bytes.next()?) << (8 * i)))
        };
        let (length, offset) = match (tag & 3, tag >> 2) {
            (0, length @ 0..60) => (usize::from(length) + 1, None),
            (0, more) => (number(more - 59)?.saturating_add(1), None),
            (1, rest) => (usize::from(rest & 7) + 4, Some(usize::from(tag >> 5) << 8 | number(1)?)),
            (2, length) => (usize::from(length) + 1, Some(number(2)?)),
            (_, length) => (usize::from(length) + 1, Some(number(4)?)),
        };
        for _ in 0..length.min(4 - have) {
            beginning[have] = match offset {
                None => bytes.next()?,
                Some(offset @ 1..) => *beginning.get(have.checked_sub(offset)?)?,
                Some(0) => return None,
            };
            have += 1;
        }
    }
    Some(beginning)
}

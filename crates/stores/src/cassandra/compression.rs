//! Compression of frames (protocols 3 and 4) and of segments (protocol 5).

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use super::wire::BODY_MAX;

loadstone_load::named_variants! {
    /// A compression algorithm.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Algorithm {
        /// LZ4's block format. In frames, the uncompressed length precedes the block.
        Lz4 = "lz4",
        /// Snappy's raw format, which protocol 5 does not support.
        Snappy = "snappy",
    }
}

/// A compression algorithm with its state and reused buffers.
pub struct Compressor {
    pub algorithm: Algorithm,
    table: CompressTable,
    snappy: snap::raw::Encoder,
    buffer: Vec<u8>,
}

impl Compressor {
    /// Creates a compressor for an algorithm.
    pub fn new(algorithm: Algorithm) -> Self {
        let (table, snappy) = (CompressTable::default(), snap::raw::Encoder::new());
        Self { algorithm, table, snappy, buffer: Vec::new() }
    }

    /// Compresses data to an LZ4 block without its length; `None` if the block would not be shorter than the data.
    pub fn compress_block(&mut self, text: &[u8]) -> Option<&[u8]> {
        self.buffer.resize(get_maximum_output_size(text.len()), 0);
        let len = compress_into_with_table(text, &mut self.buffer, &mut self.table).ok()?;
        self.buffer.get(..len).filter(|block| block.len() < text.len())
    }

    /// Compresses the body of a frame; `None` if it would not become shorter.
    pub fn compress_body(&mut self, body: &[u8]) -> Option<&[u8]> {
        let len = match self.algorithm {
            Algorithm::Lz4 => {
                self.buffer.resize(4 + get_maximum_output_size(body.len()), 0);
                let (head, block) = self.buffer.split_at_mut(4);
                head.copy_from_slice(&(body.len() as u32).to_be_bytes());
                4 + compress_into_with_table(body, block, &mut self.table).ok()?
            }
            Algorithm::Snappy => {
                self.buffer.resize(snap::raw::max_compress_len(body.len()), 0);
                self.snappy.compress(body, &mut self.buffer).ok()?
            }
        };
        self.buffer.get(..len).filter(|compressed| compressed.len() < body.len())
    }

    /// Decompresses the body of a frame.
    pub fn read_body(&mut self, body: &[u8]) -> Result<&[u8], String> {
        let len = match self.algorithm {
            Algorithm::Lz4 => {
                let (head, block) = body.split_first_chunk().ok_or("a compressed body without its length")?;
                let len = check_length(u32::from_be_bytes(*head) as usize)?;
                return self.read_block(block, len);
            }
            Algorithm::Snappy => check_length(snap::raw::decompress_len(body).map_err(|error| error.to_string())?)?,
        };
        self.buffer.resize(len, 0);
        let read = snap::raw::Decoder::new().decompress(body, &mut self.buffer);
        read.map_err(|error| error.to_string())?;
        Ok(&self.buffer[..len])
    }

    /// Decompresses an LZ4 block to this number of bytes.
    pub fn read_block(&mut self, block: &[u8], len: usize) -> Result<&[u8], String> {
        self.buffer.resize(len, 0);
        let read = decompress_into(block, &mut self.buffer).map_err(|error| error.to_string())?;
        if read == len { Ok(&self.buffer) } else { Err(format!("a block has {read} bytes instead of {len}")) }
    }
}

fn check_length(len: usize) -> Result<usize, String> {
    if len <= BODY_MAX { Ok(len) } else { Err(format!("a compressed body that would expand to {len} bytes")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bodies_return_as_they_were(word in proptest::collection::vec(any::<u8>(), 1..50), times in 1usize..5_000) {
            let body = word.repeat(times);
            for algorithm in [Algorithm::Lz4, Algorithm::Snappy] {
                let mut compressor = Compressor::new(algorithm);
                if let Some(compressed) = compressor.compress_body(&body).map(<[u8]>::to_vec) {
                    prop_assert!(compressed.len() < body.len());
                    prop_assert_eq!(compressor.read_body(&compressed).unwrap(), &body);
                } else {
                    prop_assert!(times < 20);
                }
            }
        }

        #[test]
        fn damaged_bodies_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            // Longer bodies are not tested, because a buffer of 256 MB for each case would be slow.
            let bytes = [&[0, 0][..], &bytes].concat();
            for algorithm in [Algorithm::Lz4, Algorithm::Snappy] {
                let _ = Compressor::new(algorithm).read_body(&bytes);
            }
        }
    }

    #[test]
    fn immense_texts_are_refused() {
        assert!(Compressor::new(Algorithm::Lz4).read_body(&[0xFF; 20]).is_err());
        assert!(Compressor::new(Algorithm::Snappy).read_body(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0]).is_err());
    }
}

//! Compression of file contents in the formats of Hadoop's codecs, as in `TestDFSIO -compression`.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::{GzEncoder, MultiGzDecoder, ZlibDecoder, ZlibEncoder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of compressed bytes decoded at once. This limits the memory for their output, which may be a thousand
/// times as long.
const PIECE: usize = 4_096;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// gzip (RFC 1952).
    Gzip,
    /// zlib (RFC 1950), which Hadoop calls deflate.
    Deflate,
}

impl Codec {
    /// The format that a Hadoop class implements, given the full or simple name of the class.
    pub fn from_class(class: &str) -> Option<Self> {
        match class.strip_prefix("org.apache.hadoop.io.compress.").unwrap_or(class) {
            "GzipCodec" => Some(Self::Gzip),
            "DefaultCodec" | "DeflateCodec" => Some(Self::Deflate),
            _ => None,
        }
    }
}

/// Compresses a stream at Hadoop's default level.
#[derive(Debug)]
pub enum Encoder {
    /// gzip.
    Gzip(GzEncoder<Vec<u8>>),
    /// zlib.
    Deflate(ZlibEncoder<Vec<u8>>),
}

impl Encoder {
    /// Starts a stream.
    pub fn new(codec: Codec) -> Self {
        match codec {
            Codec::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::default())),
            Codec::Deflate => Self::Deflate(ZlibEncoder::new(Vec::new(), Compression::default())),
        }
    }

    /// Accepts bytes and returns the compressed bytes that are complete. The remainder is buffered until the end.
    pub fn encode(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(stream) => stream.write_all(bytes).map(|()| std::mem::take(stream.get_mut())),
            Self::Deflate(stream) => stream.write_all(bytes).map(|()| std::mem::take(stream.get_mut())),
        }
    }

    /// Ends the stream, and returns the remaining compressed bytes.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(stream) => stream.finish(),
            Self::Deflate(stream) => stream.finish(),
        }
    }
}

#[derive(Debug)]
enum DecoderStream {
    Gzip(MultiGzDecoder<Vec<u8>>),
    Deflate(ZlibDecoder<Vec<u8>>),
}

/// Decompresses a stream.
#[derive(Debug)]
pub struct Decoder {
    stream: DecoderStream,
    /// The offset, in the compressed file, of the next bytes to feed.
    pub at: u64,
    /// Number of bytes that [`take_output`](Self::take_output) returned last, and that the next
    /// [`decode_chunk`](Self::decode_chunk) removes.
    consumed: usize,
}

impl Decoder {
    /// Starts a stream.
    pub fn new(codec: Codec) -> Self {
        let stream = match codec {
            Codec::Gzip => DecoderStream::Gzip(MultiGzDecoder::new(Vec::new())),
            Codec::Deflate => DecoderStream::Deflate(ZlibDecoder::new(Vec::new())),
        };
        Self { stream, at: 0, consumed: 0 }
    }

    fn input_buffer(&mut self) -> &mut Vec<u8> {
        match &mut self.stream {
            DecoderStream::Gzip(stream) => stream.get_mut(),
            DecoderStream::Deflate(stream) => stream.get_mut(),
        }
    }

    /// Removes the bytes that `take_output` returned, and feeds compressed bytes until `len` bytes are decoded. Without
    /// input, decodes the bytes that the decoder still holds. Returns whether `len` bytes are available.
    pub fn decode_chunk(&mut self, compressed: &[u8], len: usize) -> io::Result<bool> {
        let consumed = std::mem::take(&mut self.consumed);
        self.input_buffer().drain(..consumed);
        for piece in compressed.chunks(PIECE) {
            if self.input_buffer().len() >= len {
                break;
            }
            match &mut self.stream {
                DecoderStream::Gzip(stream) => stream.write_all(piece)?,
                DecoderStream::Deflate(stream) => stream.write_all(piece)?,
            }
            self.at += piece.len() as u64;
        }
        if compressed.is_empty() {
            match &mut self.stream {
                DecoderStream::Gzip(stream) => stream.flush()?,
                DecoderStream::Deflate(stream) => stream.flush()?,
            }
        }
        Ok(self.input_buffer().len() >= len)
    }

    /// The next decoded bytes: `len` bytes, or fewer at the end of the stream.
    pub fn take_output(&mut self, len: usize) -> &[u8] {
        self.consumed = len.min(self.input_buffer().len());
        let consumed = self.consumed;
        &self.input_buffer()[..consumed]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoder_accepts_any_piece_size_in_bounded_memory() {
        for codec in [Codec::Gzip, Codec::Deflate] {
            // The content begins with incompressible bytes; the bytes that follow compress a thousandfold.
            let mut content = vec![0; 20_000_000];
            crate::content::Content::new(3).fill(0, 0, &mut content[..50_000]);
            let mut encoder = Encoder::new(codec);
            let mut stored =
                content.chunks(1_000_003).flat_map(|part| encoder.encode(part).unwrap()).collect::<Vec<_>>();
            stored.extend(encoder.finish().unwrap());
            assert!(stored.len() < 100_000, "{}", stored.len());
            let mut decoder = Decoder::new(codec);
            for part in content.chunks(300_001) {
                let at = decoder.at as usize;
                let enough = decoder.decode_chunk(&stored[at..], part.len()).unwrap();
                assert!(enough || decoder.decode_chunk(&[], part.len()).unwrap());
                assert!(decoder.input_buffer().len() < 300_001 + 5_000_000);
                assert!(decoder.take_output(part.len()) == part);
            }
            assert!(!decoder.decode_chunk(&[], 1).unwrap() && decoder.take_output(1).is_empty());
        }
    }

    #[test]
    fn codecs_have_hadoops_names() {
        let class = |name: &str| Codec::from_class(name);
        assert_eq!(class("org.apache.hadoop.io.compress.GzipCodec"), Some(Codec::Gzip));
        assert_eq!(class("DefaultCodec"), Some(Codec::Deflate));
        assert_eq!(class("org.apache.hadoop.io.compress.SnappyCodec"), None);
    }
}

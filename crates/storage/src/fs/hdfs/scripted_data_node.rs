//! A data node for tests that sends a block according to a script.

use crc_fast::CrcAlgorithm;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::block_reader::{CHECKSUM_OK, READ_BLOCK};
use super::messages::{
    BlockResponse, Checksum, DataNodeId, DataNodeInfo, ExtendedBlock, LocatedBlock, PacketHeader, ReadBlock,
    ReadChecksums, read_delimited,
};
use crate::content::Content;

/// Bytes per checksum.
pub const CHUNK: usize = 512;

/// How a scripted data node sends a block.
#[derive(Clone, Debug)]
pub struct Script {
    pub content: Vec<u8>,
    /// Chunks per packet.
    pub chunks: usize,
    /// Chunks in every third packet.
    pub chunks_of_third: usize,
    /// Number of bytes per send.
    pub piece: usize,
    /// The type of the checksums. 0: none, 1: CRC-32, 2: CRC-32C.
    pub kind: i32,
    /// The position of a byte that is altered after its checksum is computed.
    pub flipped: Option<usize>,
    /// Number of bytes sent before the connection is closed.
    pub sent: usize,
}

impl Script {
    /// A complete block of this many bytes, in packets of 64 KiB.
    pub fn new(bytes: usize) -> Self {
        let mut content = vec![0; bytes];
        Content::new(5).fill(0, 0, &mut content);
        Self { content, chunks: 128, chunks_of_third: 128, piece: usize::MAX, kind: 2, flipped: None, sent: usize::MAX }
    }

    /// The response to a request, which precedes the packets.
    pub fn answer(&self, offset: usize) -> Vec<u8> {
        let checksum = Checksum { kind: self.kind, chunk_bytes: CHUNK as u32 };
        let read = Some(ReadChecksums { checksum, offset: (offset / CHUNK * CHUNK) as u64 });
        BlockResponse { status: 0, read, message: None }.encode_length_delimited_to_vec()
    }

    /// The response, followed by the packets that begin with the chunk that contains `offset`.
    pub fn response(&self, offset: usize) -> Vec<u8> {
        let first = offset / CHUNK * CHUNK;
        let mut sent = self.answer(offset);
        let (mut at, mut rest) = (first, &self.content[first..]);
        for chunks in [self.chunks, self.chunks, self.chunks_of_third].into_iter().cycle() {
            let (data, after) = rest.split_at((chunks * CHUNK).min(rest.len()));
            if data.is_empty() {
                break;
            }
            self.packet(&mut sent, at, data, false);
            (at, rest) = (at + data.len(), after);
        }
        self.packet(&mut sent, self.content.len(), &[], true);
        sent.truncate(self.sent);
        sent
    }

    /// Appends a packet.
    pub fn packet(&self, sent: &mut Vec<u8>, at: usize, data: &[u8], last: bool) {
        let sum = |chunk: &[u8]| match self.kind {
            1 => crc32fast::hash(chunk).to_be_bytes().to_vec(),
            2 => (crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, chunk) as u32).to_be_bytes().to_vec(),
            _ => Vec::new(),
        };
        let sums: Vec<u8> = data.chunks(CHUNK).flat_map(sum).collect();
        let header = PacketHeader { offset: at as i64, last, data_bytes: data.len() as i32 }.encode_to_vec();
        sent.extend((4 + sums.len() as u32 + data.len() as u32).to_be_bytes());
        sent.extend((header.len() as u16).to_be_bytes());
        sent.extend([header, sums].concat());
        let begin = sent.len();
        sent.extend(data);
        if let Some(flipped) = self.flipped.and_then(|flipped| flipped.checked_sub(at)).filter(|at| *at < data.len()) {
            sent[begin + flipped] ^= 1;
        }
    }

    /// Serves any number of requests for the block on each connection. Returns the block's location.
    pub async fn serve(self, offset_in_file: u64) -> LocatedBlock {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = u32::from(server.local_addr().unwrap().port());
        let id = DataNodeId { ip: "127.0.0.1".to_owned(), host: "localhost".to_owned(), port, ..DataNodeId::default() };
        let bytes = self.content.len() as u64;
        let block = ExtendedBlock { pool: "BP-1".to_owned(), id: 7, generation: 1001, bytes };
        tokio::spawn(async move {
            loop {
                let (mut client, _) = server.accept().await.unwrap();
                // Without TCP_NODELAY, each small piece may wait for a delayed acknowledgement.
                client.set_nodelay(true).unwrap();
                let mut version = [0; 3];
                while client.read_exact(&mut version).await.is_ok() {
                    assert_eq!(version, READ_BLOCK);
                    let request: ReadBlock = read_delimited(&mut client).await.unwrap();
                    assert_eq!(request.offset + request.bytes, self.content.len() as u64);
                    // The client may close the connection before the end.
                    let mut sent = Ok(());
                    for piece in self.response(request.offset as usize).chunks(self.piece) {
                        sent = sent.and(client.write_all(piece).await);
                        tokio::task::yield_now().await;
                    }
                    let mut status = [0; 3];
                    if sent.is_err() || self.sent != usize::MAX || client.read_exact(&mut status).await.is_err() {
                        break;
                    }
                    assert_eq!(status, CHECKSUM_OK);
                }
            }
        });
        LocatedBlock {
            block,
            offset: offset_in_file,
            nodes: vec![DataNodeInfo { id, ..DataNodeInfo::default() }],
            ..LocatedBlock::default()
        }
    }
}

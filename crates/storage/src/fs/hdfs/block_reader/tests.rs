use std::time::Duration;

use proptest::prelude::*;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::*;
use crate::fs::hdfs::scripted_data_node::{CHUNK, Script};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn request(block: &LocatedBlock, offset: u64) -> BlockReader {
    let address = format!("127.0.0.1:{}", block.nodes[0].id.port);
    let node = DataNode::connect(address, Duration::from_secs(5)).await.unwrap();
    BlockReader::request(node, block, offset).await.unwrap()
}

/// Reads to the end, with a buffer of this size.
async fn read_all(reader: &mut BlockReader, buffer: usize) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    let mut into = vec![0; buffer];
    while !reader.is_done() {
        let bytes = reader.read(&mut into).await?;
        assert!(bytes == buffer || reader.is_done());
        read.extend_from_slice(&into[..bytes]);
    }
    Ok(read)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn blocks_are_read_in_buffers_of_any_size(
        bytes in 1..300_000_usize, part in 0.0..1.0_f64, buffer in 1..400_000_usize, whole_chunks: bool,
        chunks in 1..200_usize, chunks_of_third in 1..200_usize, same_size: bool, piece in 1..100_000_usize, kind in 0..3_i32,
    ) {
        runtime().block_on(async {
            let chunks_of_third = if same_size { chunks } else { chunks_of_third };
            let piece = piece + bytes / 1_000;
            let script = Script { chunks, chunks_of_third, piece, kind, ..Script::new(bytes) };
            let offset = (part * bytes as f64) as usize;
            let expected = script.content[offset..].to_vec();
            let block = script.serve(0).await;
            let mut reader = request(&block, offset as u64).await;
            let buffer = if whole_chunks { buffer.next_multiple_of(CHUNK) } else { buffer.max(bytes / 1_000 + 1) };
            assert!(read_all(&mut reader, buffer).await.unwrap() == expected);
            // The connection accepts another request.
            let mut again = BlockReader::request(reader.finish().await.unwrap(), &block, 0).await.unwrap();
            assert_eq!(read_all(&mut again, buffer).await.unwrap().len(), bytes);
        });
    }

    #[test]
    fn a_flipped_bit_is_never_handed_out(
        bytes in 1..200_000_usize, flipped in 0.0..1.0_f64, chunks in 1..200_usize, piece in 100..100_000_usize, kind in 1..3_i32,
    ) {
        runtime().block_on(async {
            let flipped = (flipped * bytes as f64) as usize;
            let script = Script { chunks, chunks_of_third: chunks, piece, kind, ..Script::new(bytes) };
            let block = Script { flipped: Some(flipped), ..script }.serve(0).await;
            let error = read_all(&mut request(&block, 0).await, 10_240).await.unwrap_err();
            assert_eq!(error.to_string(), "ChecksumError");
        });
    }

    #[test]
    fn a_connection_that_ends_anywhere_is_an_error(bytes in 1..200_000_usize, sent in 0.0..1.0_f64) {
        runtime().block_on(async {
            let script = Script::new(bytes);
            let (answer, mut last) = (script.answer(0).len(), Vec::new());
            script.packet(&mut last, bytes, &[], true);
            // The connection ends after the response to the request and before the last byte of data.
            let sent = answer + (sent * (script.response(0).len() - last.len() - answer) as f64) as usize;
            let block = Script { sent, ..Script::new(bytes) }.serve(0).await;
            assert!(read_all(&mut request(&block, 0).await, 10_000).await.is_err());
        });
    }
}

#[test]
fn missing_and_repeated_packets_are_refused() {
    runtime().block_on(async {
        for offset in [0, 1_024, 65_536] {
            let script = Script::new(200_000);
            let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = server.local_addr().unwrap().to_string();
            let mut sent = script.answer(0);
            script.packet(&mut sent, 0, &script.content[..512], false);
            script.packet(&mut sent, offset, &script.content[offset..offset + 512], false);
            tokio::spawn(async move {
                let (mut client, _) = server.accept().await.unwrap();
                client.write_all(&sent).await.unwrap();
                client.read_to_end(&mut Vec::new()).await.ok();
            });
            let block = script.serve(0).await;
            let node = DataNode::connect(address, Duration::from_secs(5)).await.unwrap();
            let mut reader = BlockReader::request(node, &block, 0).await.unwrap();
            let error = reader.read(&mut [0; 1_000]).await.unwrap_err();
            assert!(error.to_string().ends_with("where 512 was expected"), "{error}");
        }
    });
}

#[test]
fn short_last_packet_is_read_without_waiting() {
    runtime().block_on(async {
        // The last packet has one chunk and is shorter than the head of the packet before it.
        let script = Script { chunks: 139, chunks_of_third: 196, piece: 297, kind: 1, ..Script::new(296_448) };
        let expected = script.content[53_673..].to_vec();
        let block = script.serve(0).await;
        let mut reader = request(&block, 53_673).await;
        assert!(read_all(&mut reader, 400_000).await.unwrap() == expected);
    });
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    runtime().block_on(async {
        for (payload, header, data) in
            [(3_u32, 18_u16, 0_i32), (u32::MAX, 18, 0), (4, 18, 5), (4, u16::MAX, 0), (4, 18, -1)]
        {
            let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = server.local_addr().unwrap().to_string();
            tokio::spawn(async move {
                let (mut client, _) = server.accept().await.unwrap();
                let mut sent = Script::new(1_000).answer(0);
                sent.extend(payload.to_be_bytes());
                sent.extend(header.to_be_bytes());
                let mut head = PacketHeader { offset: 0, last: false, data_bytes: data }.encode_to_vec();
                head.resize(usize::from(header), 0);
                sent.extend(head);
                client.write_all(&sent).await.unwrap();
                client.read_to_end(&mut Vec::new()).await.ok();
            });
            let block = Script::new(1_000).serve(0).await;
            let node = DataNode::connect(address, Duration::from_secs(5)).await.unwrap();
            let mut reader = BlockReader::request(node, &block, 0).await.unwrap();
            assert!(reader.read(&mut [0; 100]).await.is_err(), "{payload} {header} {data}");
        }
    });
}

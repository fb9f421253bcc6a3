//! Tests of writes to scripted servers.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::scripted_cluster::{Cluster, State, Wrong};
use super::{Hdfs, HdfsWriter};
use crate::content::Content;
use crate::fs::error::{FsError, FsErrorKind};
use crate::fs::{CreateOptions, FileSystem, Writer};

/// The settings of a client.
fn settings(pairs: &[(&str, usize)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect()
}

fn bytes_of(bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    Content::new(5).fill(0, 0, &mut content);
    content
}

async fn create_file(cluster: &Cluster, block_bytes: u64) -> (Hdfs, Result<HdfsWriter, FsError>) {
    let hdfs = Hdfs::new(&cluster.authority, &BTreeMap::new()).unwrap();
    let options = CreateOptions { block_bytes: Some(block_bytes), ..CreateOptions::default() };
    let created = hdfs.create("/a", &options).await;
    (hdfs, created)
}

/// Writes content in buffers of this size and closes the file.
async fn write_content(writer: &mut HdfsWriter, content: &[u8], buffer: usize) -> Result<(), FsError> {
    for part in content.chunks(buffer) {
        writer.write_copy(part).await?;
    }
    writer.complete_file().await
}

fn fault_strategy(nodes: usize) -> impl Strategy<Value = Wrong> {
    let packet = prop_oneof![3 => 0..4_usize, 1 => 0..40_usize];
    prop_oneof![
        2 => Just(Wrong::Nothing),
        4 => (0..nodes).prop_map(|node| Wrong::Refused { node }),
        4 => packet.clone().prop_map(|packet| Wrong::Closed { packet }),
        4 => packet.clone().prop_map(|packet| Wrong::Unacknowledged { packet }),
        4 => (packet.clone(), 0..nodes).prop_map(|(packet, node)| Wrong::Failed { packet, node }),
        1 => (packet.clone(), 0..nodes).prop_map(|(packet, node)| Wrong::Hung { packet, node }),
        1 => packet.prop_map(|packet| Wrong::Silent { packet }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn remaining_data_nodes_have_all_bytes(
        nodes in 1..4_usize,
        wrong in proptest::collection::vec(fault_strategy(3), 0..4),
        buffers in prop_oneof![
            proptest::collection::vec(1..2_000_usize, 0..200),
            proptest::collection::vec(1..200_000_usize, 0..20),
            proptest::collection::vec(1..(3_usize << 20), 0..3),
        ],
        block_bytes in prop_oneof![1..3_000_000_usize, (1..400_usize).prop_map(|chunks| chunks * 512)],
        packet in prop_oneof![Just(65_536_usize), 600..200_000_usize],
        window in 1..81_usize,
        piece in 1..40_usize,
        flushes in proptest::collection::vec(0..20_u8, 200),
        sync_blocks: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let content = bytes_of(buffers.iter().sum());
            // Limits the number of blocks and packets.
            let block_bytes = block_bytes.max(content.len() / 20) as u64;
            let packet = packet.max(content.len() / 1_000);
            let silent = wrong.iter().any(|wrong| matches!(wrong, Wrong::Silent { .. } | Wrong::Hung { .. }));
            let cluster = Cluster::start(nodes, State { piece, ..State::new(&wrong) }).await;
            let timeout = if silent { 300 } else { 60_000 };
            let settings = settings(&[
                ("dfs.client-write-packet-size", packet),
                ("dfs.client.write.max-packets-in-flight", window),
                ("dfs.client.socket-timeout", timeout),
            ]);
            let hdfs = Hdfs::new(&cluster.authority, &settings).unwrap();
            let options = CreateOptions { block_bytes: Some(block_bytes), sync_blocks, ..CreateOptions::default() };
            let mut writer = super::BlockWriter::create(&hdfs.name_node, &settings, "/a", &options).await.unwrap().unwrap();
            let mut written = Ok(());
            let mut at = 0;
            for (bytes, flush) in buffers.iter().zip(&flushes) {
                writer.buffer(*bytes).copy_from_slice(&content[at..at + bytes]);
                at += bytes;
                written = writer.submit().await;
                if written.is_ok() && *flush < 2 {
                    written = writer.flush(*flush == 1).await;
                    if written.is_ok() {
                        assert!(cluster.state().content().as_deref() == Some(&content[..at]));
                    }
                }
                if written.is_err() {
                    break;
                }
            }
            if written.is_ok() {
                written = writer.complete().await;
            }
            let state = cluster.state();
            assert_eq!(state.complete, written.is_ok());
            if written.is_ok() {
                assert!(state.content() == Some(content));
            } else {
                let failed = wrong.iter().filter(|wrong| **wrong != Wrong::Nothing).count();
                assert!(failed >= nodes, "{written:?} with {failed} failures of {nodes} data nodes");
            }
        });
    }
}

#[tokio::test]
async fn only_the_failed_data_node_is_dropped() {
    for wrong in [Wrong::Hung { packet: 3, node: 1 }, Wrong::Failed { packet: 3, node: 1 }] {
        let cluster = Cluster::start(3, State::new(&[wrong])).await;
        let settings = settings(&[("dfs.client.socket-timeout", 300)]);
        let hdfs = Hdfs::new(&cluster.authority, &settings).unwrap();
        let mut writer = hdfs.create("/a", &CreateOptions::default()).await.unwrap();
        let content = bytes_of(1_000_000);
        write_content(&mut writer, &content, 500_000).await.unwrap();
        let state = cluster.state();
        assert!(state.content() == Some(content));
        let left: Vec<_> = state.blocks[0].nodes.iter().map(|node| node.id.id.as_str()).collect();
        assert_eq!(left, ["node-0", "node-2"], "{wrong:?}: {}", super::last_warning());
    }
}

#[tokio::test]
async fn files_of_any_length_have_the_right_blocks() {
    for (bytes, blocks) in [(0, 0), (1, 1), (99_999, 1), (100_000, 1), (100_001, 2), (300_000, 3)] {
        let cluster = Cluster::start(2, State::new(&[])).await;
        let content = bytes_of(bytes);
        let mut writer = create_file(&cluster, 100_000).await.1.unwrap();
        write_content(&mut writer, &content, 70_000).await.unwrap();
        assert_eq!(writer.position(), bytes as u64);
        writer.close().await.unwrap();
        let state = cluster.state();
        assert_eq!((state.blocks.len(), state.complete), (blocks, true));
        assert!(state.content() == Some(content));
        assert_eq!(state.calls.iter().filter(|call| *call == "create").count(), 1);
    }
}

#[tokio::test]
async fn sync_reaches_all_copies_and_readers() {
    for (bytes, sync, syncs) in [(70_001, true, 1), (100_000, true, 2), (70_001, false, 0)] {
        let cluster = Cluster::start(3, State::new(&[])).await;
        let content = bytes_of(bytes + 1);
        let mut writer = create_file(&cluster, 100_000).await.1.unwrap();
        writer.write_copy(&content[..bytes]).await.unwrap();
        if sync {
            writer.sync().await.unwrap();
        } else {
            writer.flush().await.unwrap();
        }
        {
            let state = cluster.state();
            assert!(state.content().as_deref() == Some(&content[..bytes]));
            assert!(state.replicas.len() == 3 && state.replicas.values().all(|replica| replica.syncs == syncs));
            assert_eq!(state.calls.last().unwrap(), "fsync");
        }
        write_content(&mut writer, &content[bytes..], 1).await.unwrap();
        assert!(cluster.state().content() == Some(content));
    }
}

#[tokio::test]
async fn durable_file_syncs_each_complete_block() {
    // For each block, a data node syncs twice: the data, and then the directory that contains it.
    for (sync_blocks, syncs) in [(true, 2), (false, 0)] {
        let cluster = Cluster::start(2, State::new(&[])).await;
        let hdfs = Hdfs::new(&cluster.authority, &BTreeMap::new()).unwrap();
        let options = CreateOptions { block_bytes: Some(100_000), sync_blocks, ..CreateOptions::default() };
        let mut writer = hdfs.create("/a", &options).await.unwrap();
        // The second block ends in the middle of a buffer, and the third block ends when the file is completed.
        write_content(&mut writer, &bytes_of(250_000), 50_000 + 70_000).await.unwrap();
        let state = cluster.state();
        assert_eq!(state.replicas.len(), 6);
        assert!(state.replicas.values().all(|replica| replica.syncs == syncs));
    }
}

#[tokio::test]
async fn idle_client_keeps_block_and_lease() {
    let cluster = Cluster::start(1, State::new(&[])).await;
    let (_hdfs, writer) = create_file(&cluster, 1 << 20).await;
    let mut writer = writer.unwrap();
    let content = bytes_of(200_000);
    writer.write_copy(&content[..100_000]).await.unwrap();
    writer.flush().await.unwrap();
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(95)).await;
    tokio::time::resume();
    {
        let state = cluster.state();
        assert!(state.heartbeats >= 2, "{}", state.heartbeats);
        assert!(state.calls.iter().filter(|call| *call == "renewLease").count() >= 2, "{:?}", state.calls);
    }
    write_content(&mut writer, &content[100_000..], 100_000).await.unwrap();
    drop(writer);
    assert!(cluster.state().content() == Some(content));
    let before = cluster.state().calls.len();
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(95)).await;
    assert_eq!(cluster.state().calls.len(), before);
}

#[tokio::test]
async fn call_with_lost_answer_executes_once() {
    for answers_lost in [true, false] {
        for calls_per_connection in 1..4 {
            let state = State { calls_per_connection, answers_lost, ..State::new(&[]) };
            let cluster = Cluster::start(1, state).await;
            let content = bytes_of(300_000);
            let mut writer = create_file(&cluster, 100_000).await.1.unwrap();
            write_content(&mut writer, &content, 70_000).await.unwrap();
            let state = cluster.state();
            assert!(state.content() == Some(content) && state.complete);
            assert_eq!(state.calls, ["getServerDefaults", "create", "addBlock", "addBlock", "addBlock", "complete"]);
        }
    }
}

#[tokio::test]
async fn reports_of_blocks_are_waited_for() {
    let cluster = Cluster::start(1, State { not_complete: 2, not_reported: 1, ..State::new(&[]) }).await;
    let content = bytes_of(3_000);
    let mut writer = create_file(&cluster, 2_000).await.1.unwrap();
    write_content(&mut writer, &content, 1_000).await.unwrap();
    let state = cluster.state();
    assert!(state.complete && state.content() == Some(content));
    assert_eq!(state.calls.iter().filter(|call| *call == "complete").count(), 3);
}

#[tokio::test]
async fn refusal_of_the_name_node_is_final() {
    for (method, class, kind) in [
        ("create", "org.apache.hadoop.fs.FileAlreadyExistsException", FsErrorKind::AlreadyExists),
        ("create", "org.apache.hadoop.hdfs.server.namenode.SafeModeException", FsErrorKind::Unavailable),
        ("create", "org.apache.hadoop.security.AccessControlException", FsErrorKind::Forbidden),
        ("addBlock", "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", FsErrorKind::NoSpace),
    ] {
        let cluster = Cluster::start(1, State::new(&[])).await;
        cluster.state().refused.insert(method, (class, "as scripted"));
        let error = match create_file(&cluster, 1_000).await.1 {
            Err(error) => error,
            Ok(mut writer) => write_content(&mut writer, &bytes_of(2_000), 2_000).await.unwrap_err(),
        };
        assert_eq!(error.kind, kind);
        assert!(error.message.contains("as scripted"), "{error}");
        assert_eq!(cluster.state().calls.iter().filter(|call| *call == method).count(), 1);
    }
}

#[tokio::test]
async fn crate_writes_striped_and_encrypted_files() {
    let zone = "org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException";
    for striped in [true, false] {
        let cluster = Cluster::start(1, State { erasure_coding: striped, ..State::new(&[]) }).await;
        if !striped {
            cluster.state().refused.insert("create", (zone, "as scripted"));
        }
        let _ = create_file(&cluster, 1_000).await;
        let calls = cluster.state().calls.clone();
        let expected: &[&str] = if striped { &["create", "delete"] } else { &["create"] };
        assert_eq!(calls[1..=expected.len()], *expected);
        // The remaining calls are made by `hdfs-native`.
        assert!(calls[1 + expected.len()..].contains(&"create".to_owned()), "{calls:?}");
    }
}

#[tokio::test]
async fn loss_of_all_data_nodes_fails_the_file() {
    let before = super::data_node_failures();
    let cluster = Cluster::start(2, State::new(&[Wrong::Nothing, Wrong::Closed { packet: 1 }])).await;
    cluster.state().wrong.push_back(Wrong::Refused { node: 0 });
    let content = bytes_of(400_000);
    let mut writer = create_file(&cluster, 100_000).await.1.unwrap();
    let error = write_content(&mut writer, &content, 150_000).await.unwrap_err();
    // `hdfs-native` finds an empty file on the servers.
    assert_eq!((error.kind, writer.position(), writer.retry_count()), (FsErrorKind::Rewound, 0, 1), "{error}");
    assert!(super::data_node_failures() >= before + 2);
    let state = cluster.state();
    assert!(state.calls.contains(&"recoverLease".to_owned()) && !state.complete);
}

#[tokio::test]
async fn a_file_that_was_replaced_is_left_alone() {
    let cluster = Cluster::start(1, State::new(&[Wrong::Closed { packet: 1 }])).await;
    cluster.state().wrong.push_back(Wrong::Refused { node: 0 });
    cluster.state().file = 78;
    let mut writer = create_file(&cluster, 1 << 20).await.1.unwrap();
    let error = write_content(&mut writer, &bytes_of(400_000), 150_000).await.unwrap_err();
    assert_eq!(error.kind, FsErrorKind::NotFound, "{error}");
    let calls = cluster.state().calls.clone();
    assert!(!calls.contains(&"recoverLease".to_owned()) && !calls.contains(&"append".to_owned()), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn file_with_unreported_block_is_not_reopened() {
    let cluster = Cluster::start(1, State { not_complete: 100, ..State::new(&[]) }).await;
    let content = bytes_of(3_000);
    let mut writer = create_file(&cluster, 1 << 20).await.1.unwrap();
    let start = tokio::time::Instant::now();
    let error = write_content(&mut writer, &content, 3_000).await.unwrap_err();
    assert!(error.message.contains("not reported"), "{error}");
    assert!(writer.close().await.is_err());
    assert_eq!(start.elapsed().as_secs(), 102);
    let state = cluster.state();
    assert_eq!(state.calls.iter().filter(|call| *call == "complete").count(), 9);
    assert!(!state.calls.contains(&"recoverLease".to_owned()) && state.content() == Some(content));
}

#[tokio::test]
async fn durable_block_syncs_before_its_last_packet() {
    // There are two packets with data, a packet for the sync, and the last packet.
    let cluster = Cluster::start(2, State::new(&[Wrong::Closed { packet: 3 }])).await;
    let hdfs = Hdfs::new(&cluster.authority, &BTreeMap::new()).unwrap();
    let mut writer = hdfs.create("/a", &CreateOptions { sync_blocks: true, ..CreateOptions::default() }).await.unwrap();
    write_content(&mut writer, &bytes_of(100_000), 50_000).await.unwrap();
    let state = cluster.state();
    let left = state.nodes.iter().position(|node| *node == state.blocks[0].nodes[0]).unwrap();
    assert_eq!((state.blocks[0].nodes.len(), state.replicas[&(left, state.blocks[0].block.id)].syncs), (1, 1));
}

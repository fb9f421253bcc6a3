//! A name node and data nodes for tests of writes, with scripted failures. The nodes check everything they receive.
//!
//! A client connects only to the first data node of a pipeline, which stores the copies for all nodes.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crc_fast::CrcAlgorithm;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::messages::{
    DataNodeId, DataNodeInfo, ExtendedBlock, LocatedBlock, RequestHeader, RpcRequestHeader, RpcResponseHeader,
    read_delimited,
};
use super::name_node::{CONTEXT_CALL, GREETING};
use super::pipeline::WRITE_BLOCK;
use super::write_messages::{
    AbandonBlock, Acknowledgement, AddBlock, BlockAnswer, Complete, Completed, Create, Created, FileStatus,
    PipelineAnswer, PipelineStage, SentHeader, ServerDefaults, ServerDefaultsAnswer, UpdateBlock, UpdatePipeline,
    WriteBlock,
};

/// A fault of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wrong {
    Nothing,
    /// The pipeline cannot be set up because of this node.
    Refused {
        node: usize,
    },
    /// The pipeline closes the connection when it receives this packet.
    Closed {
        packet: usize,
    },
    /// The pipeline closes the connection after it has stored this packet.
    Unacknowledged {
        packet: usize,
    },
    /// The pipeline acknowledges this packet with an error from this node.
    Failed {
        packet: usize,
        node: usize,
    },
    /// The pipeline acknowledges this packet with an error, but keeps the connection open.
    Hung {
        packet: usize,
        node: usize,
    },
    /// The pipeline stops responding at this packet.
    Silent {
        packet: usize,
    },
}

/// A copy of a block.
#[derive(Clone, Debug, Default)]
pub struct Replica {
    pub bytes: Vec<u8>,
    pub generation: u64,
    pub last: bool,
    pub syncs: usize,
}

/// A message, or the class and text of an exception.
pub type Answer = Result<Vec<u8>, (String, String)>;

/// The response to `append`.
#[derive(Clone, PartialEq, Message)]
struct Appended {
    #[prost(message, required, tag = "2")]
    status: FileStatus,
}

/// The number of the file being written.
const FILE: u64 = 77;

/// The state of the servers.
#[derive(Debug, Default)]
pub struct State {
    pub nodes: Vec<DataNodeInfo>,
    pub replicas: BTreeMap<(usize, u64), Replica>,
    /// The blocks of the file.
    pub blocks: Vec<LocatedBlock>,
    pub complete: bool,
    pub erasure_coding: bool,
    /// The fault of each pipeline, in the order in which the pipelines are set up.
    pub wrong: VecDeque<Wrong>,
    /// Maximum number of acknowledgement bytes per send.
    pub piece: usize,
    /// Number of times that the name node first replies that the file is not complete (`not_complete`), or that a block
    /// is not replicated yet (`not_reported`).
    pub not_complete: usize,
    pub not_reported: usize,
    /// The exception that each method throws, as class and text.
    pub refused: BTreeMap<&'static str, (&'static str, &'static str)>,
    /// The executed calls, in order.
    pub calls: Vec<String>,
    /// Number of calls that each connection to the name node answers before it is closed.
    pub calls_per_connection: usize,
    /// Whether the name node executes one more call without answering it before it closes a connection.
    pub answers_lost: bool,
    pub answers: BTreeMap<(Vec<u8>, i32), Answer>,
    pub heartbeats: usize,
    pub next_block: u64,
    /// The number of the file that the path refers to.
    pub file: u64,
}

/// The servers.
#[derive(Clone)]
pub struct Cluster {
    pub authority: String,
    state: Arc<Mutex<State>>,
}

impl Cluster {
    /// Starts a name node and this number of data nodes.
    pub async fn start(nodes: usize, state: State) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = server.local_addr().unwrap().to_string();
        let cluster = Self { authority, state: Arc::new(Mutex::new(state)) };
        let name_node = cluster.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = server.accept().await {
                tokio::spawn(name_node.clone().serve_calls(client));
            }
        });
        for node in 0..nodes {
            let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = u32::from(server.local_addr().unwrap().port());
            let (ip, host) = ("127.0.0.1".to_owned(), "localhost".to_owned());
            let id = DataNodeId { ip, host, id: format!("node-{node}"), port, ..DataNodeId::default() };
            cluster.state().nodes.push(DataNodeInfo { id, location: Some("/rack".to_owned()), upgrade_domain: None });
            let data_node = cluster.clone();
            tokio::spawn(async move {
                while let Ok((client, _)) = server.accept().await {
                    tokio::spawn(data_node.clone().serve_pipeline(node, client));
                }
            });
        }
        cluster
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Panics while the state is locked, unless `holds` is true. This poisons the lock, so the test fails as well.
    fn check(&self, holds: bool) {
        let _state = self.state();
        assert!(holds);
    }

    async fn serve_calls(self, mut client: TcpStream) -> io::Result<()> {
        let mut greeting = [0; GREETING.len()];
        client.read_exact(&mut greeting).await?;
        self.check(greeting == GREETING);
        let mut left = self.state().calls_per_connection;
        loop {
            let bytes = client.read_u32().await?;
            let mut call = vec![0; bytes as usize];
            client.read_exact(&mut call).await?;
            let mut rest = call.as_slice();
            let header = RpcRequestHeader::decode_length_delimited(&mut rest)?;
            if header.call_id == CONTEXT_CALL {
                continue;
            }
            if left == 0 && !self.state().answers_lost {
                return Ok(());
            }
            let method = RequestHeader::decode_length_delimited(&mut rest)?.method;
            let answer = {
                let mut state = self.state();
                let key = (header.client_id, header.call_id);
                // As in Hadoop's `RetryCache`, a call is executed only once.
                let known = state.answers.get(&key).cloned();
                assert!(known.is_none() || header.retry_count > 0);
                let answer = known.unwrap_or_else(|| state.answer(&method, rest));
                state.answers.insert(key, answer.clone());
                answer
            };
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            let (message, error) = match answer {
                Ok(message) => (message, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            let (class, text) = error.clone().unzip();
            let call_id = header.call_id as u32;
            let header = RpcResponseHeader { call_id, status: i32::from(error.is_some()), class, message: text };
            let answer = [header.encode_length_delimited_to_vec(), message].concat();
            client.write_all(&[&(answer.len() as u32).to_be_bytes(), answer.as_slice()].concat()).await?;
        }
    }

    async fn serve_pipeline(self, first: usize, mut client: TcpStream) -> io::Result<()> {
        // Real data nodes set this option as well (`dfs.data.transfer.server.tcpnodelay`).
        client.set_nodelay(true)?;
        let mut operation = [0; 3];
        client.read_exact(&mut operation).await?;
        self.check(operation == WRITE_BLOCK);
        let request: WriteBlock = read_delimited(&mut client).await?;
        let (wrong, nodes) = {
            let mut state = self.state();
            let index = |node: &DataNodeInfo| state.nodes.iter().position(|other| other == node).unwrap();
            let nodes: Vec<_> = [first].into_iter().chain(request.targets.iter().map(index)).collect();
            (state.wrong.pop_front().unwrap_or(Wrong::Nothing), nodes)
        };
        self.check(request.nodes as usize == nodes.len() && request.target_storages.len() == nodes.len() - 1);
        if let Wrong::Refused { node } = wrong {
            let node = node % nodes.len();
            let address = format!("127.0.0.1:{}", self.state().nodes[nodes[node]].id.port);
            let first_bad = Some(if node == 0 { String::new() } else { address });
            let answer = PipelineAnswer { status: 1, first_bad, message: Some("as scripted".to_owned()) };
            return client.write_all(&answer.encode_length_delimited_to_vec()).await;
        }
        self.state().set_up(&request, &nodes);
        client.write_all(&PipelineAnswer::default().encode_length_delimited_to_vec()).await?;
        let mut number = None;
        for packet in 0.. {
            if request.stage == PipelineStage::CloseRecovery as i32 {
                break;
            }
            let (header, sums, data) = receive(&mut client).await?;
            if header.number == -1 {
                self.state().heartbeats += 1;
                self.acknowledge(&mut client, -1, &vec![0; nodes.len()]).await?;
                continue;
            }
            self.check(number.is_none_or(|number: i64| header.number == number + 1));
            number = Some(header.number);
            let mut statuses = vec![0; nodes.len()];
            match wrong {
                Wrong::Closed { packet: at } if at == packet => return Ok(()),
                Wrong::Silent { packet: at } if at == packet => {
                    client.read_to_end(&mut Vec::new()).await?;
                    return Ok(());
                }
                Wrong::Failed { packet: at, node } | Wrong::Hung { packet: at, node } if at == packet => {
                    statuses[node % nodes.len()] = 1;
                }
                _ => {}
            }
            for (node, _) in nodes.iter().zip(&statuses).filter(|(_, status)| **status == 0) {
                let mut state = self.state();
                let replica = state.replicas.get_mut(&(*node, request.header.base.block.id)).unwrap();
                replica.receive(&header, &sums, &data, &request);
            }
            if wrong == (Wrong::Unacknowledged { packet }) {
                break;
            }
            // A data node finalizes the block when it receives the last packet, which must not arrive before all
            // earlier packets are acknowledged.
            let mut next = [0; 31];
            if let Ok(Ok(31)) = tokio::time::timeout(Duration::ZERO, client.peek(&mut next)).await {
                self.check(!SentHeader::decode(&next[6..])?.last);
            }
            self.acknowledge(&mut client, header.number, &statuses).await?;
            if matches!(wrong, Wrong::Hung { .. }) && statuses.contains(&1) {
                client.read_to_end(&mut Vec::new()).await?;
            }
            if header.last || statuses.contains(&1) {
                break;
            }
        }
        Ok(())
    }

    async fn acknowledge(&self, client: &mut TcpStream, number: i64, statuses: &[i32]) -> io::Result<()> {
        let (replies, flags) = (statuses.to_vec(), statuses.iter().map(|status| (status | 64) as u32).collect());
        let message = Acknowledgement { number, replies, flags }.encode_length_delimited_to_vec();
        let piece = self.state().piece.max(1);
        for piece in message.chunks(piece) {
            client.write_all(piece).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

async fn receive(client: &mut TcpStream) -> io::Result<(SentHeader, Vec<u8>, Vec<u8>)> {
    let payload = client.read_u32().await? as usize;
    let mut header = vec![0; usize::from(client.read_u16().await?)];
    client.read_exact(&mut header).await?;
    let header = SentHeader::decode(header.as_slice())?;
    let mut data = vec![0; header.data_bytes as usize];
    let mut sums = vec![0; payload - 4 - data.len()];
    client.read_exact(&mut sums).await?;
    client.read_exact(&mut data).await?;
    Ok((header, sums, data))
}

impl Replica {
    /// Checks a packet as a data node does (`BlockReceiver.receivePacket`).
    fn receive(&mut self, header: &SentHeader, sums: &[u8], data: &[u8], request: &WriteBlock) {
        assert!(!self.last);
        let chunk = request.checksum.chunk_bytes as usize;
        let algorithm = if request.checksum.kind == 2 { CrcAlgorithm::Crc32Iscsi } else { CrcAlgorithm::Crc32IsoHdlc };
        let expected = data.chunks(chunk).flat_map(|chunk| (crc_fast::checksum(algorithm, chunk) as u32).to_be_bytes());
        assert!(expected.eq(sums.iter().copied()));
        let offset = header.offset as usize;
        assert!(offset <= self.bytes.len(), "bytes are missing before {offset}");
        if data.is_empty() {
            assert_eq!(offset, self.bytes.len());
            assert!(header.last || header.sync == Some(true));
        } else {
            assert!(offset.is_multiple_of(chunk) && !header.last);
            let known = (self.bytes.len() - offset).min(data.len());
            assert!(self.bytes[offset..offset + known] == data[..known]);
            self.bytes.extend_from_slice(&data[known..]);
        }
        self.last = header.last;
        self.syncs += usize::from(header.sync == Some(true));
    }
}

impl State {
    /// Servers with these faults and no others.
    pub fn new(wrong: &[Wrong]) -> Self {
        let wrong = wrong.iter().copied().collect();
        Self { wrong, piece: usize::MAX, calls_per_connection: usize::MAX, file: FILE, ..Self::default() }
    }

    /// Sets up the copies of a block as data nodes do (`DataXceiver.writeBlock`, `FsDatasetImpl.recoverRbw`).
    fn set_up(&mut self, request: &WriteBlock, nodes: &[usize]) {
        let block = &request.header.base.block;
        for node in nodes {
            let replica = self.replicas.entry((*node, block.id)).or_default();
            let bytes = replica.bytes.len() as u64;
            match PipelineStage::try_from(request.stage).unwrap() {
                PipelineStage::Create => {
                    assert_eq!((bytes, request.bytes_min, request.bytes_max), (0, 0, 0));
                    replica.generation = block.generation;
                    continue;
                }
                PipelineStage::StreamingRecovery => {
                    assert!((request.bytes_min..=request.bytes_max).contains(&bytes) && !replica.last);
                }
                PipelineStage::CloseRecovery => {
                    assert_eq!(request.bytes_min, bytes);
                    replica.last = true;
                }
                PipelineStage::Append => panic!("nothing is appended"),
            }
            assert!((block.generation..request.generation).contains(&replica.generation));
            replica.generation = request.generation;
        }
    }

    fn answer(&mut self, method: &str, request: &[u8]) -> Answer {
        self.calls.push(method.to_owned());
        if let Some((class, text)) = self.refused.get(method) {
            return Err(((*class).to_owned(), (*text).to_owned()));
        }
        Ok(match method {
            "getServerDefaults" => {
                let defaults = ServerDefaults { block_bytes: 1 << 20, replication: 3, encrypted: None };
                ServerDefaultsAnswer { defaults }.encode_length_delimited_to_vec()
            }
            "create" => {
                let request = Create::decode_length_delimited(request).unwrap();
                let erasure_coding = self.erasure_coding.then(|| vec![1]);
                let (block_bytes, id) = (Some(request.block_bytes), Some(FILE));
                let status = Some(FileStatus { block_bytes, id, encryption: None, erasure_coding });
                Created { status }.encode_length_delimited_to_vec()
            }
            "addBlock" => {
                let request = AddBlock::decode_length_delimited(request).unwrap();
                self.check_last(request.previous.as_ref());
                if self.not_reported > 0 {
                    self.not_reported -= 1;
                    let class = "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException";
                    return Err((class.to_owned(), "Not replicated yet: /a".to_owned()));
                }
                // The excluded nodes must include their racks, as the name node requires.
                assert!(request.excluded.iter().all(|node| self.nodes.contains(node)));
                let block = self.add(&request.excluded)?;
                BlockAnswer { block }.encode_length_delimited_to_vec()
            }
            "abandonBlock" => {
                let request = AbandonBlock::decode_length_delimited(request).unwrap();
                assert_eq!(self.blocks.pop().map(|last| last.block.id), Some(request.block.id));
                vec![0]
            }
            "updateBlockForPipeline" => {
                let request = UpdateBlock::decode_length_delimited(request).unwrap();
                self.next_block += 1;
                let block = ExtendedBlock { generation: 1_000 + self.next_block, ..request.block };
                let block = LocatedBlock { block, ..LocatedBlock::default() };
                BlockAnswer { block }.encode_length_delimited_to_vec()
            }
            "updatePipeline" => {
                let request = UpdatePipeline::decode_length_delimited(request).unwrap();
                let last = self.blocks.last_mut().unwrap();
                assert_eq!((request.before.id, request.before.generation), (last.block.id, last.block.generation));
                assert_eq!(request.nodes.len(), request.storages.len());
                last.block.generation = request.after.generation;
                last.nodes.retain(|node| request.nodes.contains(&node.id));
                assert_eq!(last.nodes.len(), request.nodes.len());
                vec![0]
            }
            "complete" => {
                let request = Complete::decode_length_delimited(request).unwrap();
                self.check_last(request.last.as_ref());
                let done = self.not_complete == 0;
                self.not_complete = self.not_complete.saturating_sub(1);
                self.complete = done;
                Completed { done }.encode_length_delimited_to_vec()
            }
            // `hdfs-native` sees an empty file.
            "getFileInfo" => {
                let status = FileStatus { id: Some(self.file), ..FileStatus::default() };
                Created { status: Some(status) }.encode_length_delimited_to_vec()
            }
            "append" => Appended { status: FileStatus::default() }.encode_length_delimited_to_vec(),
            "recoverLease" => Completed { done: true }.encode_length_delimited_to_vec(),
            _ => vec![0],
        })
    }

    fn add(&mut self, excluded: &[DataNodeInfo]) -> Result<LocatedBlock, (String, String)> {
        self.next_block += 1;
        let id = self.next_block;
        let block = ExtendedBlock { pool: "BP-1".to_owned(), id, generation: 1_000 + id, bytes: 0 };
        let nodes: Vec<_> = self.nodes.iter().filter(|node| !excluded.contains(node)).cloned().collect();
        if nodes.is_empty() {
            let text = "File /a could only be written to 0 of the 1 minReplication nodes.";
            return Err(("java.io.IOException".to_owned(), text.to_owned()));
        }
        let storages = nodes.iter().map(|node| format!("storage of {}", node.id.id)).collect();
        let storage_types = vec![1; nodes.len()];
        let block = LocatedBlock { block, nodes, storage_types, storages, ..LocatedBlock::default() };
        self.blocks.push(block.clone());
        Ok(block)
    }

    /// Checks the writer's claim that the last block is complete on all data nodes that the name node lists for the
    /// block.
    fn check_last(&mut self, last: Option<&ExtendedBlock>) {
        let Some(known) = self.blocks.last_mut() else { return assert_eq!(last, None) };
        let last = last.unwrap();
        known.block.bytes = last.bytes;
        assert_eq!(known.block, *last);
        for node in &known.nodes {
            let node = self.nodes.iter().position(|other| other == node).unwrap();
            let replica = &self.replicas[&(node, last.id)];
            assert!(replica.last);
            assert_eq!((replica.bytes.len() as u64, replica.generation), (last.bytes, last.generation));
        }
    }

    /// The content of the file on the data nodes that the name node lists for its blocks; `None` if the copies differ.
    pub fn content(&self) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        for block in &self.blocks {
            let index = |node: &DataNodeInfo| self.nodes.iter().position(|other| other == node).unwrap();
            let copy = |node| self.replicas.get(&(index(node), block.block.id)).map(|replica| &replica.bytes);
            let first = copy(block.nodes.first()?)?;
            if block.nodes.iter().any(|node| copy(node) != Some(first)) {
                return None;
            }
            content.extend_from_slice(first);
        }
        Some(content)
    }
}

//! Calls a name node to locate a file's blocks and to write files.
//!
//! Hadoop's IPC is used without authentication. A name node that requires authentication closes the connection; files
//! are then read and written through the crate `hdfs-native`.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdfs_native::HdfsError;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use super::lease::{LeaseHolder, OpenFiles};
use super::messages::{
    BlockLocations, ConnectionContext, DataNodeInfo, GetBlockLocations, LocatedFile, RequestHeader, RpcRequestHeader,
    RpcResponseHeader, UserInformation, check_length, invalid,
};
use super::packets::SegmentMemory;
use super::write_messages::{Empty, RenewLease, ServerDefaults, ServerDefaultsAnswer};

const PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
/// The start of a connection: version 9, service class 0, no authentication (`org.apache.hadoop.ipc.Server`).
pub(super) const GREETING: &[u8] = b"hrpc\x09\x00\x00";
/// The call id of the connection's context (`RpcConstants.CONNECTION_CONTEXT_CALL_ID`).
pub(super) const CONTEXT_CALL: i32 = -3;
const PROTOCOL_BUFFERS: i32 = 2;
/// Settings that may require authentication or encryption, with the values that require neither.
const PROTECTED: [(&str, &str); 3] = [
    ("hadoop.security.authentication", "simple"),
    ("dfs.encrypt.data.transfer", "false"),
    ("dfs.data.transfer.protection", ""),
];
/// Default timeout, as in Hadoop (`dfs.client.socket-timeout`), ms.
const TIMEOUT_MS: u64 = 60_000;
const NO_LIMIT: Duration = Duration::from_secs(30 * 86_400);
/// Maximum number of idle connections: one for the client's calls, and one for renewing the client's leases.
const IDLE_MAX: usize = 2;

/// A name node and the idle connections to it.
#[derive(Debug)]
pub(super) struct NameNode {
    authority: String,
    user: String,
    /// The client name under which leases of files being written are held.
    pub client: String,
    /// Identifies the client in the name node's cache of responses, together with the number of the call.
    client_id: Vec<u8>,
    calls: AtomicI32,
    /// Maximum time without a message from a server.
    pub timeout: Duration,
    /// Whether data nodes are addressed by host name.
    by_host_name: bool,
    /// Whether the name node and the data nodes respond to this client.
    usable: AtomicBool,
    /// Whether a data node has responded.
    answered: AtomicBool,
    idle: Mutex<Vec<NameNodeConnection>>,
    defaults: OnceCell<ServerDefaults>,
    pub open_files: OpenFiles,
    pub memory: Arc<SegmentMemory>,
}

/// A call, which may be sent twice.
struct Call<'a> {
    id: i32,
    method: &'a str,
    request: Vec<u8>,
}

/// A name node's response to a call: a message, or the class and text of an exception.
type Answer = Result<Vec<u8>, (String, String)>;

impl LeaseHolder for NameNode {
    fn open_files(&self) -> &OpenFiles {
        &self.open_files
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    async fn renew_leases(&self) -> bool {
        let request = RenewLease { client: self.client.clone() };
        self.call_method::<Empty>("renewLease", &request).await.is_ok()
    }
}

impl NameNode {
    /// The name node at `authority` (`host:port`), which must not be a name service.
    pub fn new(authority: &str, user: String, settings: &BTreeMap<String, String>) -> Self {
        let get = |name: &str| settings.get(name).map(String::as_str);
        let plain = PROTECTED.iter().all(|(name, plain)| get(name).is_none_or(|value| value == *plain));
        let timeout = get("dfs.client.socket-timeout").and_then(|value| value.parse().ok()).unwrap_or(TIMEOUT_MS);
        // The random numbers are seeded by the operating system.
        let random = [(); 2].map(|()| RandomState::new().build_hasher().finish());
        Self {
            authority: authority.to_owned(),
            user,
            client: format!("loadstone_{:016x}", random[0]),
            client_id: random.iter().flat_map(|half| half.to_be_bytes()).collect(),
            calls: AtomicI32::new(0),
            // 0 means no limit, as in Hadoop.
            timeout: if timeout == 0 { NO_LIMIT } else { Duration::from_millis(timeout) },
            by_host_name: get("dfs.client.use.datanode.hostname") == Some("true"),
            usable: AtomicBool::new(plain && authority.contains(':')),
            answered: AtomicBool::new(false),
            idle: Mutex::default(),
            defaults: OnceCell::new(),
            open_files: OpenFiles::default(),
            memory: Arc::default(),
        }
    }

    /// Whether files can be read and written without `hdfs-native`.
    pub fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Relaxed)
    }

    /// Records that the name node does not respond to this client.
    pub fn give_up(&self) {
        self.usable.store(false, Ordering::Relaxed);
    }

    /// Records that a data node has responded.
    pub fn data_node_answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Records that all data nodes of a block have failed. If no data node has ever responded, the addresses may be
    /// unreachable from here, or reachable only with settings from a site file, which `hdfs-native` reads. In that case
    /// no further file is accessed directly.
    pub fn data_nodes_failed(&self) {
        self.usable.fetch_and(self.answered.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The address of a data node.
    pub fn address_of(&self, node: &DataNodeInfo) -> String {
        let host = if self.by_host_name { &node.id.host } else { &node.id.ip };
        format!("{host}:{}", node.id.port)
    }

    /// The blocks of a file; `None` if they cannot be read directly because the file is striped, encrypted or still
    /// being written. Also `None` after any failure, which `hdfs-native` then encounters too and reports.
    pub async fn locate_file(&self, path: &str) -> Option<LocatedFile> {
        if !self.is_usable() {
            return None;
        }
        let question = GetBlockLocations { path: path.to_owned(), offset: 0, length: i64::MAX as u64 };
        match self.call_method::<BlockLocations>("getBlockLocations", &question).await {
            Ok(locations) => locations
                .file
                .filter(|file| !file.under_construction && file.encryption.is_none() && file.erasure_coding.is_none()),
            Err(error) => {
                if matches!(error, HdfsError::IOError(_)) {
                    self.give_up();
                }
                None
            }
        }
    }

    /// The server's defaults for unspecified file settings.
    pub async fn defaults(&self) -> Result<ServerDefaults, HdfsError> {
        let ask = async || {
            let answer = self.call_method::<ServerDefaultsAnswer>("getServerDefaults", &Empty {}).await;
            answer.map(|answer| answer.defaults)
        };
        self.defaults.get_or_try_init(ask).await.cloned()
    }

    /// Calls a method of the name node. An exception becomes an [`HdfsError::RPCError`], as in `hdfs-native`; any other
    /// failure becomes an [`HdfsError::IOError`].
    ///
    /// A call whose response was lost is repeated with the same number over a new connection. The name node executes it
    /// only once (`RetryCache`).
    pub async fn call_method<A: Message + Default>(
        &self,
        method: &str,
        request: &impl Message,
    ) -> Result<A, HdfsError> {
        let id = self.calls.fetch_add(1, Ordering::Relaxed) & i32::MAX;
        let call = Call { id, method, request: request.encode_length_delimited_to_vec() };
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let answered = match idle {
            // The connection may have been closed, because name nodes close idle connections.
            Some(mut connection) => match self.limit_time(connection.ask(&call, 0)).await {
                Ok(answer) => Ok((connection, answer)),
                Err(_) => self.connect_and_ask(&call, 1).await,
            },
            None => self.connect_and_ask(&call, 0).await,
        };
        let (connection, answer) = answered?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        drop(idle);
        match answer {
            Ok(message) => Ok(A::decode_length_delimited(message.as_slice()).map_err(io::Error::from)?),
            // The exception is converted as in `hdfs-native` (`convert_rpc_error`).
            Err((class, message)) => match class.rsplit('.').next() {
                Some("FileAlreadyExistsException" | "AlreadyBeingCreatedException") => {
                    Err(HdfsError::AlreadyExists(message))
                }
                _ => Err(HdfsError::RPCError(class, message)),
            },
        }
    }

    async fn connect_and_ask(&self, call: &Call<'_>, retries: i32) -> io::Result<(NameNodeConnection, Answer)> {
        self.limit_time(async {
            let mut connection = NameNodeConnection::open(&self.authority, &self.user, &self.client_id).await?;
            let answer = connection.ask(call, retries).await?;
            Ok((connection, answer))
        })
        .await
    }

    async fn limit_time<T>(&self, answer: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::time::timeout(self.timeout, answer).await?
    }
}

#[derive(Debug)]
struct NameNodeConnection {
    stream: TcpStream,
    client_id: Vec<u8>,
}

impl NameNodeConnection {
    async fn open(authority: &str, user: &str, client_id: &[u8]) -> io::Result<Self> {
        let stream = TcpStream::connect(authority).await?;
        stream.set_nodelay(true)?;
        let mut connection = Self { stream, client_id: client_id.to_vec() };
        connection.stream.write_all(GREETING).await?;
        let user = UserInformation { effective_user: user.to_owned() };
        let context = ConnectionContext { user, protocol: PROTOCOL.to_owned() };
        connection.send(CONTEXT_CALL, 0, &[&context.encode_length_delimited_to_vec()]).await?;
        Ok(connection)
    }

    async fn send(&mut self, call_id: i32, retry_count: i32, messages: &[&[u8]]) -> io::Result<()> {
        let client_id = self.client_id.clone();
        let header = RpcRequestHeader { rpc_kind: PROTOCOL_BUFFERS, rpc_op: 0, call_id, client_id, retry_count };
        let body = [header.encode_length_delimited_to_vec(), messages.concat()].concat();
        self.stream.write_all(&[&(body.len() as u32).to_be_bytes(), body.as_slice()].concat()).await
    }

    async fn ask(&mut self, call: &Call<'_>, retries: i32) -> io::Result<Answer> {
        let header = RequestHeader { method: call.method.to_owned(), protocol: PROTOCOL.to_owned(), version: 1 };
        self.send(call.id, retries, &[&header.encode_length_delimited_to_vec(), &call.request]).await?;
        let bytes = check_length(u64::from(self.stream.read_u32().await?))?;
        let mut answer = vec![0; bytes];
        self.stream.read_exact(&mut answer).await?;
        let mut rest = answer.as_slice();
        let header = RpcResponseHeader::decode_length_delimited(&mut rest)?;
        let (class, message) = (header.class.unwrap_or_default(), header.message.unwrap_or_default());
        match header.status {
            _ if header.call_id as i32 != call.id => Err(invalid(format!("the answer to another call: {message}"))),
            0 => Ok(Ok(rest.to_vec())),
            1 => Ok(Err((class, message))),
            _ => Err(invalid(format!("{class}: {message}"))),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A name node that returns this file in answer to every request on its first connection, and replies on later
    /// connections that the file does not exist. Returns its address.
    pub async fn serve(file: Option<LocatedFile>) -> String {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let mut locations = Ok(BlockLocations { file });
            while let Ok((client, _)) = server.accept().await {
                tokio::spawn(answer(client, std::mem::replace(&mut locations, Err("java.io.FileNotFoundException"))));
            }
        });
        address
    }

    async fn answer(mut client: TcpStream, locations: Result<BlockLocations, &str>) {
        let mut greeting = [0; GREETING.len()];
        client.read_exact(&mut greeting).await.unwrap();
        assert_eq!(greeting, GREETING);
        while let Ok(bytes) = client.read_u32().await {
            let mut call = vec![0; bytes as usize];
            client.read_exact(&mut call).await.unwrap();
            let call_id = RpcRequestHeader::decode_length_delimited(call.as_slice()).unwrap().call_id;
            if call_id == CONTEXT_CALL {
                continue;
            }
            let class = locations.as_ref().err().map(|&class| class.to_owned());
            let status = i32::from(locations.is_err());
            let header = RpcResponseHeader { call_id: call_id as u32, status, class, message: None };
            let header = header.encode_length_delimited_to_vec();
            let locations = locations.clone().unwrap_or_default().encode_length_delimited_to_vec();
            client.write_all(&((header.len() + locations.len()) as u32).to_be_bytes()).await.unwrap();
            client.write_all(&[header, locations].concat()).await.unwrap();
        }
    }

    fn connect_to(authority: &str, settings: &[(&str, &str)]) -> NameNode {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        NameNode::new(authority, "me".to_owned(), &settings)
    }

    #[tokio::test]
    async fn only_whole_plain_files_are_located() {
        let whole = LocatedFile { bytes: 9, ..LocatedFile::default() };
        let name_node = connect_to(&serve(Some(whole.clone())).await, &[]);
        assert_eq!(name_node.locate_file("/a").await, Some(whole.clone()));
        // This call uses the first connection again: the server returns the file on no other connection.
        assert_eq!(name_node.locate_file("/b").await, Some(whole.clone()));
        for other in [
            LocatedFile { under_construction: true, ..whole.clone() },
            LocatedFile { encryption: Some(vec![1]), ..whole.clone() },
            LocatedFile { erasure_coding: Some(vec![1]), ..whole.clone() },
        ] {
            assert_eq!(connect_to(&serve(Some(other)).await, &[]).locate_file("/a").await, None);
        }
        assert_eq!(connect_to(&serve(None).await, &[]).locate_file("/a").await, None);
    }

    #[tokio::test]
    async fn protected_clusters_and_name_services_are_not_asked() {
        let address = serve(Some(LocatedFile::default())).await;
        for (authority, name, value) in [
            (address.as_str(), "hadoop.security.authentication", "kerberos"),
            (&address, "dfs.encrypt.data.transfer", "true"),
            (&address, "dfs.data.transfer.protection", "privacy"),
            ("nameservice", "dfs.replication", "3"),
        ] {
            assert_eq!(connect_to(authority, &[(name, value)]).locate_file("/a").await, None, "{name}");
        }
        assert!(
            connect_to(&address, &[("hadoop.security.authentication", "simple")]).locate_file("/a").await.is_some()
        );
    }

    #[tokio::test]
    async fn disconnected_name_node_receives_no_second_call() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let name_node = connect_to(&server.local_addr().unwrap().to_string(), &[]);
        tokio::spawn(async move { drop(server.accept().await) });
        assert_eq!(name_node.locate_file("/a").await, None);
        assert!(!name_node.usable.load(Ordering::Relaxed));
    }
}

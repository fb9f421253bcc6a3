//! The settings of servers and connections.

/// The cipher suites that the tool uses before 5.0.
pub(crate) const DEFAULT_CIPHERS: &str = "TLS_RSA_WITH_AES_128_CBC_SHA,TLS_RSA_WITH_AES_256_CBC_SHA";

/// The settings of `-mode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeSettings {
    /// `simplenative`: the tool's second client, which has no pool. Here, it is the same client as `native`.
    pub simple_native: bool,
    /// Whether statements are prepared.
    pub prepared: bool,
    /// Version of the native protocol; `None` for the newest version that both client and server support.
    pub protocol_version: Option<u8>,
    /// `none`, `lz4` or `snappy`.
    pub compression: String,
    /// User name.
    pub user: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// `auth-provider=`: a class of the driver. Only user name and password are supported.
    pub auth_provider: Option<String>,
    /// Maximum number of requests in flight per connection, if set. It has no effect here.
    pub max_pending_per_connection: Option<u32>,
    /// Number of connections to each node, if set.
    pub connections_per_host: Option<u32>,
    /// Number of connections to each shard of a ScyllaDB node (cql-stress). It replaces `connections_per_host`.
    pub connections_per_shard: Option<u32>,
    /// Timeout of a request in ms, if set (ScyllaDB's fork).
    pub request_timeout_ms: Option<u32>,
}

impl ModeSettings {
    /// The maximum number of requests in flight per connection that the tool prints.
    #[must_use]
    pub fn count_pending(&self) -> u32 {
        self.max_pending_per_connection.unwrap_or(128)
    }

    /// The number of connections to each node that the tool prints.
    #[must_use]
    pub fn count_connections(&self) -> u32 {
        self.connections_per_host.unwrap_or(8)
    }
}

/// The settings of `-node`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// Contact points in the form `host` or `host:port`.
    pub nodes: Vec<String>,
    /// A file with one contact point per line. [`NodeSettings::read_list`] parses its text.
    pub file: Option<String>,
    /// Whether only the contact points are used.
    pub whitelist: bool,
    /// The data centre to which connections are restricted.
    pub datacenter: Option<String>,
}

impl NodeSettings {
    /// The contact points in the text of a file.
    #[must_use]
    pub fn read_list(text: &str) -> Vec<String> {
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

/// The settings of `-schema`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaSettings {
    /// Name of the keyspace.
    pub keyspace: String,
    /// Full name of the replication strategy's class.
    pub replication_strategy: String,
    /// The options of the replication strategy, in the order of the statement.
    pub replication_options: Vec<(String, String)>,
    /// Class that compresses the tables; `None` if they are not compressed.
    pub compression: Option<String>,
    /// Class that compacts the tables.
    pub compaction_strategy: Option<String>,
    /// The options of the compaction strategy.
    pub compaction_options: Vec<(String, String)>,
}

/// `-transport`. TLS is enabled only if a trust store is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportSettings {
    /// Path of the trusted certificates, in PEM, JKS or PKCS#12 format.
    pub truststore: Option<String>,
    /// Password of the trust store.
    pub truststore_password: Option<String>,
    /// Path of the client's certificate and key.
    pub keystore: Option<String>,
    /// Password of the key store.
    pub keystore_password: Option<String>,
    /// `ssl-protocol=`, `TLS` by default.
    pub protocol: String,
    /// `ssl-alg=`.
    pub algorithm: Option<String>,
    /// Names of the cipher suites, separated by commas.
    pub ciphers: Option<String>,
    /// `factory=`, up to 3.11; used only in the settings block.
    pub factory: Option<String>,
    /// `store-type=`, up to 3.11; used only in the settings block.
    pub store_type: Option<String>,
    /// Whether the host name in the server's certificate is verified (cql-stress).
    pub hostname_verification: bool,
}

impl TransportSettings {
    /// Whether the user specified cipher suites other than the tool's defaults.
    pub(crate) fn has_ciphers(&self) -> bool {
        self.ciphers.as_deref().is_some_and(|ciphers| ciphers != DEFAULT_CIPHERS)
    }
}

/// The settings of `-port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Port for the native protocol.
    pub native: u32,
    /// JMX port, on which the tool reads the server's garbage collections.
    pub jmx: u32,
    /// Thrift port, up to 3.11; used only in the settings block.
    pub thrift: Option<u32>,
}

/// The settings of `-graph`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// The page to create or to extend.
    pub file: Option<String>,
    /// Name of the configuration.
    pub revision: String,
    /// Title of the page.
    pub title: Option<String>,
    /// Name of the operation.
    pub operation: String,
}

/// Option groups that exist only in 5.0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generation5Settings {
    /// A file with credentials.
    pub credentials_file: Option<String>,
    /// `-jmx user=`.
    pub jmx_user: Option<String>,
    /// Whether `-jmx password=` was set.
    pub has_jmx_password: bool,
    /// `-reporting output-frequency=` as the user wrote it, and in ms.
    pub output_frequency: Option<(String, u64)>,
    /// `-reporting header-frequency=` as the user wrote it, and in ms.
    pub header_frequency: Option<(String, u64)>,
}

//! Servers and connections.

/// The cipher suites of the tool before 5.0.
pub(crate) const DEFAULT_CIPHERS: &str = "TLS_RSA_WITH_AES_128_CBC_SHA,TLS_RSA_WITH_AES_256_CBC_SHA";

/// `-mode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeSettings {
    /// `simplenative`: the tool's second client, which has no pool. Here both are the same client.
    pub simple_native: bool,
    /// Whether statements are prepared.
    pub prepared: bool,
    /// Version of the native protocol; `None`: the newest that client and server support.
    pub protocol_version: Option<u8>,
    /// `none`, `lz4` or `snappy`.
    pub compression: String,
    /// User name.
    pub user: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// `auth-provider=`: a class of the driver; only user and password are supported.
    pub auth_provider: Option<String>,
    /// Maximum number of requests in flight per connection.
    pub max_pending_per_connection: u32,
    /// Number of connections to each node.
    pub connections_per_host: u32,
    /// Number of connections to each shard of a ScyllaDB node (cql-stress); replaces `connections_per_host`.
    pub connections_per_shard: Option<u32>,
    /// Timeout of a request in ms (ScyllaDB's fork).
    pub request_timeout_ms: u32,
}

/// `-node`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// Contact points, `host` or `host:port`.
    pub nodes: Vec<String>,
    /// A file with one contact point per line; [`NodeSettings::read_list`] parses its text.
    pub file: Option<String>,
    /// Whether no other nodes are used.
    pub whitelist: bool,
    /// Only nodes of this datacenter are used.
    pub datacenter: Option<String>,
}

impl NodeSettings {
    /// The contact points in the text of a file.
    #[must_use]
    pub fn read_list(text: &str) -> Vec<String> {
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

/// `-schema`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaSettings {
    /// Name of the keyspace.
    pub keyspace: String,
    /// Full name of the class.
    pub replication_strategy: String,
    /// Its options, in the order of the statement.
    pub replication_options: Vec<(String, String)>,
    /// Class that compresses the tables; `None`: uncompressed.
    pub compression: Option<String>,
    /// Class that compacts the tables.
    pub compaction_strategy: Option<String>,
    /// Its options.
    pub compaction_options: Vec<(String, String)>,
}

/// `-transport`. TLS is enabled iff a trust store is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportSettings {
    /// Path of the trusted certificates: PEM, JKS or PKCS#12.
    pub truststore: Option<String>,
    /// Its password.
    pub truststore_password: Option<String>,
    /// Path of the client's certificate and key.
    pub keystore: Option<String>,
    /// Its password.
    pub keystore_password: Option<String>,
    /// `TLS`.
    pub protocol: String,
    /// `ssl-alg=`.
    pub algorithm: Option<String>,
    /// Names of the cipher suites, with commas.
    pub ciphers: Option<String>,
    /// `factory=`, up to 3.11; only for the settings block.
    pub factory: Option<String>,
    /// `store-type=`, up to 3.11; only for the settings block.
    pub store_type: Option<String>,
    /// Whether the name in the server's certificate is verified (cql-stress).
    pub hostname_verification: bool,
}

impl TransportSettings {
    /// Whether the user named cipher suites.
    pub(crate) fn has_ciphers(&self) -> bool {
        self.ciphers.as_deref().is_some_and(|ciphers| ciphers != DEFAULT_CIPHERS)
    }
}

/// `-port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Native protocol.
    pub native: u32,
    /// JMX port; the tool reads the server's garbage collections from it.
    pub jmx: u32,
    /// Thrift port, up to 3.11; only for the settings block.
    pub thrift: Option<u32>,
}

/// `-graph`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// The page to create or extend.
    pub file: Option<String>,
    /// Name of the configuration.
    pub revision: String,
    /// Title of the page.
    pub title: Option<String>,
    /// Name of the operation.
    pub operation: String,
}

/// Groups that exist only in 5.0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generation5Settings {
    /// A file of credentials.
    pub credentials_file: Option<String>,
    /// `-jmx user=`.
    pub jmx_user: Option<String>,
    /// Whether `-jmx password=` was given.
    pub has_jmx_password: bool,
    /// `-reporting output-frequency=` in the user's form, and in ms.
    pub output_frequency: Option<(String, u64)>,
    /// `-reporting header-frequency=` in the user's form, and in ms.
    pub header_frequency: Option<(String, u64)>,
}

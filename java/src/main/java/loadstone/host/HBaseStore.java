package loadstone.host;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.EnumSet;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.VersionInfo;
import org.apache.hadoop.hbase.zookeeper.ZKConfig;

/** HBase through its Java client, with one connection for all threads and one table object per thread. */
final class HBaseStore implements Store {
  private static final int CONNECT_MS = 3_000;
  private static final int OPEN_S = 20;
  private static final int CLOSE_S = 5;
  private static final int GRACE_MS = 2_000;

  private final Configuration configuration;
  private final String quorum;
  private final TableName table;
  private final byte[] family;
  private final Durability durability;
  private final boolean buffered;
  private final long bufferBytes;
  private final boolean pageFilter;
  private final Connection connection;
  private final TableDescriptor descriptor;

  HBaseStore(String table, Properties properties) throws Exception {
    // The client prints stack traces of failures, although each operation reports its failure anyway.
    System.setErr(new PrintStream(OutputStream.nullOutputStream()));
    configuration = HBaseConfig.read(properties);
    quorum = ZKConfig.getZKQuorumServersString(configuration);
    this.table = TableName.valueOf(table);
    String familyName = properties.getProperty("columnfamily");
    family = Bytes.toBytes(familyName);
    durability = Durability.valueOf(properties.getProperty("durability", "USE_DEFAULT"));
    buffered = Boolean.parseBoolean(properties.getProperty("clientbuffering", "false"));
    bufferBytes = Long.parseLong(properties.getProperty("writebuffersize", "12582912"));
    pageFilter = Boolean.parseBoolean(properties.getProperty("hbase.usepagefilter", "true"));
    if (HBaseConfig.usesZooKeeper(configuration)) {
      seeZooKeeper();
    }
    connection = callWithin(OPEN_S, () -> ConnectionFactory.createConnection(configuration));
    descriptor = callWithin(OPEN_S, () -> describe(familyName));
  }

  /** Checks ZooKeeper first, because HBase's client retries for minutes before it reports a missing server. */
  private void seeZooKeeper() throws Refusal {
    StringBuilder tried = new StringBuilder();
    for (String server : quorum.split(",")) {
      int colon = server.lastIndexOf(':');
      InetSocketAddress address =
          new InetSocketAddress(server.substring(0, colon), Integer.parseInt(server.substring(colon + 1)));
      try (Socket socket = new Socket()) {
        socket.connect(address, CONNECT_MS);
        return;
      } catch (IOException thrown) {
        String why = address.isUnresolved() ? "there is no such host" : String.valueOf(thrown.getMessage());
        tried.append(tried.length() == 0 ? "" : "; ").append(server).append(": ").append(why);
      }
    }
    throw new Refusal("no ZooKeeper of HBase answers at " + tried, HBaseConfig.WHERE);
  }

  private TableDescriptor describe(String familyName) throws Exception {
    try (Admin admin = connection.getAdmin()) {
      String create = "`loadstone systems hbase create-table " + table + " " + familyName + "` makes it";
      if (!admin.tableExists(table)) {
        throw new Refusal("there is no table " + table + " in the HBase at " + quorum, create);
      }
      if (!admin.isTableEnabled(table)) {
        throw new Refusal("table " + table + " is disabled in the HBase at " + quorum, "enable it in the HBase shell");
      }
      TableDescriptor found = admin.getDescriptor(table);
      if (!found.hasColumnFamily(family)) {
        StringBuilder names = new StringBuilder();
        for (ColumnFamilyDescriptor each : found.getColumnFamilies()) {
          names.append(names.length() == 0 ? "" : ", ").append(each.getNameAsString());
        }
        throw new Refusal("table " + table + " has no column family " + familyName + "; it has " + names,
            "-p columnfamily=" + found.getColumnFamilies()[0].getNameAsString());
      }
      return found;
    }
  }

  /** Performs the work on a separate thread, with a time limit. */
  private <T> T callWithin(int seconds, Callable<T> work) throws Exception {
    FutureTask<T> task = new FutureTask<>(work);
    Thread thread = new Thread(task, "hbase-opening");
    thread.setDaemon(true);
    thread.start();
    try {
      return task.get(seconds, TimeUnit.SECONDS);
    } catch (TimeoutException late) {
      throw new Refusal("the HBase at " + quorum + " does not answer within " + seconds + " s", HBaseConfig.WHERE);
    } catch (ExecutionException thrown) {
      if (thrown.getCause() instanceof Refusal refusal) {
        throw refusal;
      }
      String message = ErrorMessage.format(thrown.getCause());
      throw new Refusal("the HBase at " + quorum + " cannot be used: " + message, HBaseConfig.WHERE);
    }
  }

  @Override
  public Client client() {
    // The client's own limits apply first, provided that they work.
    Deadline deadline = new Deadline(configuration.getLong("hbase.client.operation.timeout", 0) + GRACE_MS);
    return new HBaseClient(connection, table, family, durability, buffered, bufferBytes, pageFilter, deadline);
  }

  @Override
  public String facts() throws Exception {
    ClusterMetrics metrics = callWithin(OPEN_S, () -> {
      try (Admin admin = connection.getAdmin()) {
        return admin.getClusterMetrics(
            EnumSet.of(ClusterMetrics.Option.HBASE_VERSION, ClusterMetrics.Option.SERVERS_NAME));
      }
    });
    int regions = callWithin(OPEN_S, () -> connection.getRegionLocator(table).getStartKeys().length);
    ColumnFamilyDescriptor settings = descriptor.getColumnFamily(family);
    Facts facts = new Facts();
    facts.add("version", "HBase " + metrics.getHBaseVersion());
    facts.add("client", "hbase-client " + VersionInfo.getVersion());
    facts.add("address", quorum);
    facts.add("durability", durability.name());
    facts.add("table.durability", descriptor.getDurability().name());
    facts.add("consistency", "strong: reads and writes go to a region's only primary");
    facts.add("replication", descriptor.getRegionReplication() + " region replica(s); HDFS replicates below");
    facts.add("region servers", String.valueOf(metrics.getServersName().size()));
    facts.add("regions", String.valueOf(regions));
    facts.add("compression", settings.getCompressionType().name());
    facts.add("encoding", settings.getDataBlockEncoding().name());
    facts.add("bloom", settings.getBloomFilterType().name());
    facts.add("versions", String.valueOf(settings.getMaxVersions()));
    facts.add("block cache", String.valueOf(settings.isBlockCacheEnabled()));
    facts.add("client buffering", buffered ? bufferBytes + " bytes each client" : "none");
    facts.add("retries", configuration.get("hbase.client.retries.number") + " within "
        + configuration.get("hbase.client.operation.timeout") + " ms");
    return facts.toString();
  }

  @Override
  public void close() throws Exception {
    callWithin(CLOSE_S, () -> {
      connection.close();
      return null;
    });
  }
}

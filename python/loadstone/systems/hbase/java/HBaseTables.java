import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.Size;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.RetriesExhaustedException;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.compress.Compression;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Executes commands on HBase's tables for {@code hbase/tables.py}. A command is a line of tab-separated words on standard
 * input. The reply is a line on standard output: {@code yes} and JSON, or {@code no} and HBase's error.
 *
 * <p>The class path contains the site files. The program exits at the end of its input.
 */
public final class HBaseTables {
    private static final byte[] INFO = Bytes.toBytes("info");
    /** The states of regions that belong to disabled tables, or that were split or merged. */
    private static final Set<String> AT_REST = Set.of("CLOSED", "SPLIT", "MERGED");

    private HBaseTables() {}

    public static void main(String[] none) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        // The output of libraries must not be mistaken for an answer.
        System.setOut(System.err);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(reply(line.split("\t")));
        }
    }

    /** Opens a new connection, because the servers may have changed since the last command. */
    private static String reply(String[] words) {
        try (Connection connection = ConnectionFactory.createConnection(configuration(words[0]));
                Admin admin = connection.getAdmin()) {
            return "yes " + answer(connection, admin, words);
        } catch (Exception refusal) {
            return "no " + line(refusal);
        }
    }

    /**
     * The configuration in the site files, except that retries last only seconds. A caller that waits for HBase repeats
     * its command. Other callers do not, so retries last four seconds: after a failed connection to a server, two seconds
     * pass until the next attempt ({@code hbase.ipc.client.failed.servers.expiry}).
     *
     * <p>The client polls whether a table has been created after 1, 2, 3, 5, 10, 20, 40, four times 100, and 200 pauses
     * ({@code HConstants.RETRY_BACKOFF}). With the default pause of 100 ms, it notices a table that took 2.2 s after
     * 4.1 s; with 5 ms, it notices the table at most half a second late, or a second if creation takes more than 2.4 s.
     */
    private static Configuration configuration(String command) {
        Configuration configuration = HBaseConfiguration.create();
        configuration.setInt("hbase.client.pause", 5);
        configuration.setInt("hbase.client.retries.number", command.equals("serves") ? 8 : 13);
        configuration.setInt("hbase.rpc.timeout", 10_000);
        configuration.setInt("hbase.client.meta.operation.timeout", 20_000);
        configuration.setInt("hbase.client.operation.timeout", 20_000);
        configuration.setInt("zookeeper.recovery.retry", 1);
        return configuration;
    }

    private static String answer(Connection connection, Admin admin, String[] words) throws IOException {
        switch (words[0]) {
            case "serves":
                return serves(connection, admin);
            case "exists":
                return String.valueOf(admin.tableExists(TableName.valueOf(words[1])));
            case "drop":
                return String.valueOf(drop(admin, TableName.valueOf(words[1])));
            case "create":
                return create(admin, TableName.valueOf(words[1]), words);
            case "regions":
                return regions(admin);
            default:
                throw new IllegalArgumentException("unknown command " + words[0]);
        }
    }

    /**
     * Queries the namespaces, which the master stores in a table, and reads hbase:meta; returns the live servers and the
     * number of regions not open on them yet: {@code {"servers":["127.0.0.1,16020,1795283777136"],"waiting":0}}.
     */
    private static String serves(Connection connection, Admin admin) throws IOException {
        admin.listNamespaceDescriptors();
        Set<String> live = live(admin).keySet().stream()
                .map(ServerName::getServerName)
                .collect(Collectors.toCollection(TreeSet::new));
        int waiting = 0;
        try (Table meta = connection.getTable(TableName.META_TABLE_NAME);
                ResultScanner rows = meta.getScanner(new Scan().addFamily(INFO))) {
            for (Result row : rows) {
                waiting += isWaiting(row, live) ? 1 : 0;
            }
        }
        String servers = live.stream().map(HBaseTables::quote).collect(Collectors.joining(",", "[", "]"));
        return "{\"servers\":" + servers + ",\"waiting\":" + waiting + "}";
    }

    /** Whether a region should be open but is not, or is on a dead server (HBase's book, "hbase:meta"). */
    private static boolean isWaiting(Result row, Set<String> live) {
        String state = Bytes.toString(row.getValue(INFO, Bytes.toBytes("state")));
        byte[] server = row.getValue(INFO, Bytes.toBytes("server"));
        byte[] started = row.getValue(INFO, Bytes.toBytes("serverstartcode"));
        if (state == null || AT_REST.contains(state)) {
            return false;
        }
        if (!state.equals("OPEN") || server == null || started == null) {
            return true;
        }
        return !live.contains(Bytes.toString(server).replace(':', ',') + "," + Bytes.toLong(started));
    }

    /** Executes {@code create TABLE FAMILY recreate|keep COMPRESSION DURABILITY}, followed by the split keys. */
    private static String create(Admin admin, TableName table, String[] words) throws IOException {
        Compression.Algorithm compression = Compression.Algorithm.valueOf(words[4]);
        Durability durability = Durability.valueOf(words[5]);
        byte[][] keys = Arrays.stream(words).skip(6).map(Bytes::toBytes).toArray(byte[][]::new);
        if (words[3].equals("recreate")) {
            drop(admin, table);
        }
        admin.createTable(
                TableDescriptorBuilder.newBuilder(table)
                        .setColumnFamily(
                                ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(words[2]))
                                        .setCompressionType(compression)
                                        .build())
                        .setDurability(durability)
                        .build(),
                keys.length == 0 ? null : keys);
        return String.valueOf(admin.getRegions(table).size());
    }

    /** Drops a table; returns whether it existed. */
    private static boolean drop(Admin admin, TableName table) throws IOException {
        if (!admin.tableExists(table)) {
            return false;
        }
        if (admin.isTableEnabled(table)) {
            admin.disableTable(table);
        }
        admin.deleteTable(table);
        return true;
    }

    /**
     * For each server: the heap, the memstores and the number of regions by table. Queries the servers themselves,
     * because the master knows only their last reports.
     */
    private static String regions(Admin admin) throws IOException {
        Map<String, String> servers = new TreeMap<>();
        for (Map.Entry<ServerName, ServerMetrics> entry : live(admin).entrySet()) {
            Map<String, Integer> tables = new TreeMap<>();
            double memstore = 0;
            for (RegionMetrics region : admin.getRegionMetrics(entry.getKey())) {
                tables.merge(RegionInfo.getTable(region.getRegionName()).getNameAsString(), 1, Integer::sum);
                memstore += region.getMemStoreSize().get(Size.Unit.BYTE);
            }
            double heap = entry.getValue().getUsedHeapSize().get(Size.Unit.BYTE);
            String counts = tables.entrySet().stream()
                    .map(each -> quote(each.getKey()) + ":" + each.getValue())
                    .collect(Collectors.joining(",", "{", "}"));
            servers.put(
                    quote(entry.getKey().getServerName()),
                    String.format("{\"heap_bytes\":%.0f,\"memstore_bytes\":%.0f,\"tables\":%s}", heap, memstore, counts));
        }
        return servers.entrySet().stream()
                .map(each -> each.getKey() + ":" + each.getValue())
                .collect(Collectors.joining(",", "{", "}"));
    }

    private static Map<ServerName, ServerMetrics> live(Admin admin) throws IOException {
        return admin.getClusterMetrics(EnumSet.of(ClusterMetrics.Option.LIVE_SERVERS)).getLiveServerMetrics();
    }

    /** Names of tables and servers need no escapes. */
    private static String quote(String name) {
        return '"' + name + '"';
    }

    /** The error itself ({@code TableExistsException: usertable}), without the exception about retries that wraps it. */
    private static String line(Throwable refusal) {
        Throwable cause = refusal;
        while (cause instanceof RetriesExhaustedException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        String message = String.valueOf(cause.getMessage()).lines().findFirst().orElse("");
        return cause.getClass().getSimpleName() + ": " + message;
    }
}

package loadstone.host;

import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;

/** The client's configuration: hbase-site.xml from the class path, Loadstone's default limits, then the properties. */
final class HBaseConfig {
  /** The hint if HBase cannot be found. */
  static final String WHERE =
      "see that it runs, and name the directory of its hbase-site.xml: -cp DIRECTORY, or -p hbase.zookeeper.quorum=HOST";

  /**
   * With HBase's default limits, an operation may wait for a dead server for 20 minutes. These limits reduce this time
   * to about 10 s, which is longer than a region takes to move.
   */
  private static final Map<String, String> LIMITS = Map.of(
      "hbase.client.retries.number", "7",
      "hbase.client.operation.timeout", "10000",
      "hbase.client.meta.operation.timeout", "10000",
      "hbase.rpc.timeout", "10000",
      "hbase.client.scanner.timeout.period", "10000",
      "hbase.ipc.client.socket.timeout.connect", "3000",
      "zookeeper.session.timeout", "10000",
      "zookeeper.recovery.retry", "2",
      "zookeeper.recovery.retry.intervalmill", "500");

  private HBaseConfig() {}

  static Configuration read(Properties properties) {
    Configuration configuration = HBaseConfiguration.create();
    LIMITS.forEach((name, value) -> {
      if (isDefault(configuration, name)) {
        configuration.set(name, value);
      }
    });
    for (String name : properties.stringPropertyNames()) {
      if (name.startsWith("hbase.") || name.startsWith("zookeeper.")) {
        configuration.set(name, properties.getProperty(name));
      }
    }
    return configuration;
  }

  /** Whether the property is set only in the client's own jars. */
  private static boolean isDefault(Configuration configuration, String name) {
    String[] sources = configuration.getPropertySources(name);
    if (sources == null) {
      return true;
    }
    for (String source : sources) {
      if (!source.endsWith("-default.xml")) {
        return false;
      }
    }
    return true;
  }

  static boolean usesZooKeeper(Configuration configuration) {
    return configuration.get("hbase.client.registry.impl", "ZKConnectionRegistry").contains("ZKConnectionRegistry");
  }
}

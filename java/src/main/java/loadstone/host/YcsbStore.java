package loadstone.host;

import java.security.CodeSource;
import java.util.Properties;
import site.ycsb.DB;

/** A system that is used through a YCSB binding, named by its class. */
final class YcsbStore implements Store {
  private final Class<? extends DB> binding;
  private final String table;
  private final Properties properties;

  YcsbStore(String table, Properties properties) throws Exception {
    this.table = table;
    this.properties = properties;
    Class<?> named = Class.forName(properties.getProperty("db"), true, ClassLoader.getSystemClassLoader());
    // Throws an exception here if the class is not a binding.
    binding = named.asSubclass(DB.class);
    binding.getDeclaredConstructor();
  }

  @Override
  public Client client() {
    return new YcsbClient(binding, table, properties);
  }

  @Override
  public String facts() {
    Facts facts = new Facts();
    CodeSource source = binding.getProtectionDomain().getCodeSource();
    if (source != null && source.getLocation() != null) {
      String path = source.getLocation().getPath();
      facts.add("from", path.substring(path.lastIndexOf('/', path.length() - 2) + 1));
    }
    facts.add("java", System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version"));
    facts.add("heap_max_bytes", String.valueOf(Runtime.getRuntime().maxMemory()));
    return facts.toString();
  }
}

package loadstone.host;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/**
 * The methods that the engine calls. Operations do not throw: the engine receives a status and requests the message. If
 * another method throws an exception, the engine passes it to {@link #describe}.
 */
final class Host {
  private Host() {}

  /** Performs one operation of one client; see {@link Client#call}. */
  static long call(Client client, int operation, int keyLength, int length, int count) {
    try {
      return client.call(operation, keyLength, length, count);
    } catch (Throwable thrown) {
      return client.fail(thrown);
    }
  }

  static void share(Client client, ByteBuffer memory) {
    client.share(memory);
  }

  /** The message of a client's last failure; null if there was none, or if the message was already returned. */
  static byte[] words(Client client) {
    String message = client.takeMessage();
    return message == null ? null : message.getBytes(StandardCharsets.UTF_8);
  }

  /** Prepares the JVM. Returns the names of the outcomes in order. */
  static byte[] start() {
    // The engine uses standard output for its events and reports.
    System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.err), true));
    List<String> names = new ArrayList<>();
    for (Outcome outcome : Outcome.values()) {
      names.add(outcome.name());
    }
    collectors();
    return text(String.join("\n", names));
  }

  /** Opens a store: `ycsb` or `hbase`, the table, and pairs of property and value, each [int32 length][UTF-8]. */
  static Store open(byte[] request) throws Exception {
    List<String> parts = new ArrayList<>();
    try (DataInputStream input = new DataInputStream(new ByteArrayInputStream(request))) {
      while (input.available() > 0) {
        parts.add(new String(input.readNBytes(input.readInt()), StandardCharsets.UTF_8));
      }
    }
    Properties properties = new Properties();
    for (int i = 2; i < parts.size(); i += 2) {
      properties.setProperty(parts.get(i), parts.get(i + 1));
    }
    likeJavasOwn();
    return switch (parts.get(0)) {
      case "ycsb" -> new YcsbStore(parts.get(1), properties);
      case "hbase" -> new HBaseStore(parts.get(1), properties);
      default -> throw new IllegalArgumentException(parts.get(0));
    };
  }

  static byte[] facts(Store store) throws Exception {
    // The JVM that runs the client, in addition to the store's facts.
    return text(store.facts() + "jvm\t" + System.getProperty("java.vm.name") + " " + Runtime.version() + "\n");
  }

  static void close(Store store) throws Exception {
    store.close();
  }

  /** Creates a client, which this thread will drive. */
  static Client client(Store store) {
    likeJavasOwn();
    return store.client();
  }

  /** Sets the application's class loader, which bindings expect: threads created outside Java have none. */
  private static void likeJavasOwn() {
    Thread.currentThread().setContextClassLoader(ClassLoader.getSystemClassLoader());
  }

  static void connect(Client client) throws Exception {
    client.connect();
  }

  /** The message of an exception. The hint of a refusal is on a second line. */
  static byte[] describe(Throwable thrown) {
    boolean refused = thrown instanceof Refusal;
    return text(refused ? thrown.getMessage() + "\n" + ((Refusal) thrown).hint : ErrorMessage.format(thrown));
  }

  /** The JVM's garbage collectors: lines of name, tab, number of collections, tab, time in ms. */
  static byte[] collectors() {
    StringBuilder lines = new StringBuilder();
    for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
      lines.append(bean.getName()).append('\t').append(Math.max(bean.getCollectionCount(), 0)).append('\t');
      lines.append(Math.max(bean.getCollectionTime(), 0)).append('\n');
    }
    return text(lines.toString());
  }

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}

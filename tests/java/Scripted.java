import java.net.ConnectException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/** A binding whose behaviour is set by the property `scripted`, for the tests of the store `jvm`. */
public class Scripted extends DB {
  private static final AtomicInteger CALLS = new AtomicInteger();
  private static final boolean LOADED_WITH_RESOURCES = Thread.currentThread().getContextClassLoader() != null;
  private static final AtomicLong START_NS = new AtomicLong();
  private static final AtomicInteger OPEN = new AtomicInteger();
  private String script;

  @Override
  public void init() throws DBException {
    // The class loader must be the same as on YCSB's threads, both here and where the binding's class was loaded.
    ClassLoader resources = Thread.currentThread().getContextClassLoader();
    if (!LOADED_WITH_RESOURCES || resources == null || resources.getResource("site/ycsb/DB.class") == null) {
      throw new DBException("this thread's class loader does not find the entries of the class path");
    }
    script = getProperties().getProperty("scripted", "");
    OPEN.incrementAndGet();
    switch (script) {
      case "refuse" -> throw new DBException("no server", new ConnectException("Connection refused"));
      case "hook" -> Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook: ran")));
      case "endless_hook" -> Runtime.getRuntime().addShutdownHook(new Thread(Scripted::pauseForEver));
      case "exit at init" -> System.exit(3);
      case "tell" -> System.out.println("properties: " + new java.util.TreeMap<>(getProperties()));
      default -> { }
    }
  }

  @Override
  public void cleanup() throws DBException {
    int left = OPEN.decrementAndGet();
    if (script.equals("keep") && left == 0) {
      throw new DBException("the buffer of the last client stays here");
    }
    if (script.equals("tell")) {
      System.out.println("open: " + left);
    }
  }

  private Status status() {
    int call = CALLS.incrementAndGet();
    switch (script) {
      case "outage" -> {
        START_NS.compareAndSet(0, System.nanoTime());
        long sinceMs = (System.nanoTime() - START_NS.get()) / 1_000_000;
        return sinceMs >= 500 && sinceMs < 1500 ? Status.SERVICE_UNAVAILABLE : Status.OK;
      }
      case "throw" -> {
        if (call % 10 == 0) {
          throw new IllegalStateException("bad\n  thing", new RuntimeException(new ConnectException("root")));
        }
      }
      case "late" -> {
        return call % 10 == 0 ? new Status("TIMEOUT", "too late") : Status.OK;
      }
      case "own" -> {
        return call % 10 == 0 ? new Status("TEAPOT", "short and stout") : Status.OK;
      }
      case "batch" -> {
        return Status.BATCHED_OK;
      }
      case "nothing" -> {
        return null;
      }
      case "overflow" -> {
        if (call % 10 == 0) {
          return deep(0);
        }
      }
      case "exit" -> {
        if (call == 500) {
          System.exit(7);
        }
      }
      case "sleep" -> pause();
      case "garbage" -> {
        byte[][] kept = new byte[64][];
        for (int i = 0; i < kept.length; i++) {
          kept[i] = new byte[1 << 16];
        }
        return kept[call % kept.length].length > 0 ? Status.OK : Status.ERROR;
      }
      default -> { }
    }
    return Status.OK;
  }

  private static Status deep(int level) {
    return level < 0 ? Status.OK : deep(level + 1);
  }

  private static void pauseForEver() {
    pause(Long.MAX_VALUE);
  }

  private static void pause() {
    pause(5);
  }

  private static void pause(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    if (script.equals("large")) {
      byte[] bytes = new byte[3 << 20];
      java.util.Arrays.fill(bytes, (byte) 'x');
      result.put("field0", new ByteArrayByteIterator(bytes));
      result.put("absent", null);
    }
    return status();
  }

  @Override
  public Status scan(
      String table, String key, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    return status();
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return status();
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return status();
  }

  @Override
  public Status delete(String table, String key) {
    return status();
  }
}

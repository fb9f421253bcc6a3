import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.HashMap;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;

/**
 * Does nothing, but builds every value. BasicDB never reads the values, so a load on BasicDB does not include the cost
 * of building them. Loadstone's null store always builds every value.
 */
public class ConsumingDB extends DB {
  private long sum;

  private void consume(Map<String, ByteIterator> values) {
    for (ByteIterator value : values.values()) {
      for (byte b : value.toArray()) {
        sum += b;
      }
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    consume(values);
    return Status.OK;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    consume(values);
    return Status.OK;
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return Status.OK;
  }

  @Override
  public Status scan(String table, String key, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    return Status.OK;
  }

  @Override
  public Status delete(String table, String key) {
    return Status.OK;
  }
}

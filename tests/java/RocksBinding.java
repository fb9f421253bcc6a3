import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.DBOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * RocksDB through its Java API, with the layout of YCSB's binding: a column family for each table, their names in a
 * file, and a record as [int32 name length][name][int32 value length][value] for each field.
 */
public class RocksBinding extends DB {
  private static final String FAMILIES = "CF_NAMES";
  private static RocksDB rocks;
  private static ColumnFamilyHandle family;
  private static final List<ColumnFamilyHandle> handles = new ArrayList<>();
  private static int users;

  @Override
  public void init() throws DBException {
    synchronized (RocksBinding.class) {
      if (users++ > 0) {
        return;
      }
      try {
        Path directory = Path.of(getProperties().getProperty("rocks.dir"));
        Files.createDirectories(directory);
        Path names = directory.resolve(FAMILIES);
        String table = getProperties().getProperty("table", "usertable");
        List<String> known = new ArrayList<>(Files.exists(names) ? Files.readAllLines(names) : List.of("default"));
        if (!known.contains(table)) {
          known.add(table);
        }
        List<ColumnFamilyDescriptor> families = new ArrayList<>();
        for (String name : known) {
          families.add(new ColumnFamilyDescriptor(name.getBytes(StandardCharsets.UTF_8)));
        }
        RocksDB.loadLibrary();
        DBOptions options = new DBOptions().setCreateIfMissing(true).setCreateMissingColumnFamilies(true);
        rocks = RocksDB.open(options, directory.toString(), families, handles);
        family = handles.get(known.indexOf(table));
        Files.write(names, known);
      } catch (RocksDBException | IOException thrown) {
        throw new DBException(thrown);
      }
    }
  }

  @Override
  public void cleanup() {
    synchronized (RocksBinding.class) {
      if (--users == 0) {
        handles.forEach(ColumnFamilyHandle::close);
        rocks.close();
      }
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      byte[] record = rocks.get(family, bytes(key));
      if (record == null) {
        return Status.NOT_FOUND;
      }
      Map<String, ByteIterator> found = parse(record);
      if (fields != null) {
        found.keySet().retainAll(fields);
      }
      result.putAll(found);
      return Status.OK;
    } catch (RocksDBException thrown) {
      throw new IllegalStateException(thrown);
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    try {
      rocks.put(family, bytes(key), form(values));
      return Status.OK;
    } catch (RocksDBException thrown) {
      throw new IllegalStateException(thrown);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    Map<String, ByteIterator> merged = new HashMap<>();
    Status read = read(table, key, null, merged);
    if (!read.isOk()) {
      return read;
    }
    merged.putAll(values);
    return insert(table, key, merged);
  }

  @Override
  public Status delete(String table, String key) {
    try {
      rocks.delete(family, bytes(key));
      return Status.OK;
    } catch (RocksDBException thrown) {
      throw new IllegalStateException(thrown);
    }
  }

  @Override
  public Status scan(
      String table, String key, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    return Status.NOT_IMPLEMENTED;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static Map<String, ByteIterator> parse(byte[] record) {
    Map<String, ByteIterator> fields = new HashMap<>();
    for (ByteBuffer rest = ByteBuffer.wrap(record); rest.hasRemaining(); ) {
      byte[] name = new byte[rest.getInt()];
      rest.get(name);
      byte[] value = new byte[rest.getInt()];
      rest.get(value);
      fields.put(new String(name, StandardCharsets.UTF_8), new ByteArrayByteIterator(value));
    }
    return fields;
  }

  private static byte[] form(Map<String, ByteIterator> values) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream output = new DataOutputStream(bytes)) {
      for (Map.Entry<String, ByteIterator> field : values.entrySet()) {
        byte[] name = bytes(field.getKey());
        byte[] value = field.getValue().toArray();
        output.writeInt(name.length);
        output.write(name);
        output.writeInt(value.length);
        output.write(value);
      }
    } catch (IOException thrown) {
      throw new IllegalStateException(thrown);
    }
    return bytes.toByteArray();
  }
}

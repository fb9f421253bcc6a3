package loadstone.host;

import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/** A client with a separate binding object, like a thread of YCSB. It converts requests to YCSB's arguments. */
final class YcsbClient extends Client {
  private static final byte[] NO_KEY = {};

  private final Class<? extends DB> binding;
  private final String table;
  private final Properties properties;
  private final Names names = new Names();
  private DB db;
  private Status failure;

  YcsbClient(Class<? extends DB> binding, String table, Properties properties) {
    this.binding = binding;
    this.table = table;
    this.properties = properties;
  }

  @Override
  void connect() throws Exception {
    DB made;
    try {
      made = binding.getDeclaredConstructor().newInstance();
    } catch (InvocationTargetException thrown) {
      throw thrown.getCause() instanceof Exception cause ? cause : thrown;
    }
    made.setProperties(properties);
    made.init();
    db = made;
  }

  @Override
  Outcome read(Request request) {
    String key = key(request);
    if (key == null) {
      return Outcome.BAD_REQUEST;
    }
    Map<String, ByteIterator> found = new HashMap<>();
    Outcome outcome = outcome(db.read(table, key, fields(request), found));
    if (outcome == Outcome.OK) {
      record(found);
    }
    return outcome;
  }

  @Override
  Outcome scan(Request request) {
    String key = key(request);
    if (key == null) {
      return Outcome.BAD_REQUEST;
    }
    Vector<HashMap<String, ByteIterator>> found = new Vector<>();
    Outcome outcome = outcome(db.scan(table, key, request.records(), fields(request), found));
    if (outcome == Outcome.OK) {
      for (Map<String, ByteIterator> one : found) {
        // A binding does not return the keys of the records that it read.
        int place = answer.beginRecord(NO_KEY, 0, 0);
        record(one);
        answer.endRecord(place);
      }
    }
    return outcome;
  }

  @Override
  Outcome insert(Request request) {
    String key = key(request);
    return key == null ? Outcome.BAD_REQUEST : outcome(db.insert(table, key, values(request)));
  }

  @Override
  Outcome update(Request request) {
    String key = key(request);
    return key == null ? Outcome.BAD_REQUEST : outcome(db.update(table, key, values(request)));
  }

  @Override
  Outcome delete(Request request) {
    String key = key(request);
    return key == null ? Outcome.BAD_REQUEST : outcome(db.delete(table, key));
  }

  @Override
  Outcome cleanup() throws Exception {
    if (db != null) {
      db.cleanup();
    }
    return Outcome.OK;
  }

  @Override
  String takeMessage() {
    String message = super.takeMessage();
    Status status = failure;
    failure = null;
    if (message == null && status != null) {
      message = "the binding answers " + status.getName() + ": " + status.getDescription();
    }
    return message;
  }

  private String key(Request request) {
    String key = new String(request.bytes, 0, request.keyLength, StandardCharsets.UTF_8);
    if (key.indexOf('\uFFFD') >= 0) {
      refuse(Outcome.BAD_REQUEST, "the key must be UTF-8 text for YCSB's bindings");
      return null;
    }
    return key;
  }

  private Set<String> fields(Request request) {
    if (request.allFields()) {
      return null;
    }
    Set<String> fields = new HashSet<>();
    while (request.more()) {
      int length = request.partLength();
      fields.add(names.string(request.bytes, request.part(), length));
      request.skip(length);
    }
    return fields;
  }

  private Map<String, ByteIterator> values(Request request) {
    Map<String, ByteIterator> values = new HashMap<>();
    int place = 0;
    while (request.more()) {
      int length = request.partLength();
      String name = names.string(place++, request.bytes, request.part(), length);
      request.skip(length);
      length = request.partLength();
      values.put(name, new Bytes(request.bytes, request.part(), length));
      request.skip(length);
    }
    return values;
  }

  private void record(Map<String, ByteIterator> fields) {
    for (Map.Entry<String, ByteIterator> field : fields.entrySet()) {
      ByteIterator value = field.getValue();
      if (value == null) {
        // Bindings represent a field without a value in this way.
        continue;
      }
      // YCSB's iterator over a string returns only the low byte of each character.
      byte[] bytes = value instanceof StringByteIterator
          ? value.toString().getBytes(StandardCharsets.UTF_8)
          : value.toArray();
      answer.field(names.bytes(field.getKey()), bytes);
    }
  }

  private Outcome outcome(Status status) {
    if (status == Status.OK) {
      return Outcome.OK;
    }
    if (status == null) {
      return refuse(Outcome.ERROR, "the binding answers null");
    }
    failure = status;
    return Outcome.parse(status.getName());
  }
}

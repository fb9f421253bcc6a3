package loadstone.host;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** The request of an operation: the key, then fields with values (writes) or names (reads), as in {@link Answer}. */
final class Request {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);

  /** A new array for each operation, because bindings may keep parts of it after the call. */
  final byte[] bytes;

  final int keyLength;
  private final int count;
  private int at;

  Request(byte[] bytes, int keyLength, int count) {
    this.bytes = bytes;
    this.keyLength = keyLength;
    this.count = count;
    this.at = keyLength;
  }

  /** The number of records that a scan requests. */
  int records() {
    return count;
  }

  /** Whether a read or a scan requests all fields. The request then contains no names. */
  boolean allFields() {
    return at == bytes.length;
  }

  /** Whether there is another part, which is a name or the value after it. */
  boolean more() {
    return at < bytes.length;
  }

  /** The position of the next part. */
  int part() {
    return at + 4;
  }

  /** The length of the next part. */
  int partLength() {
    return (int) INT.get(bytes, at);
  }

  /** Skips the next part, which has the given length. */
  void skip(int length) {
    at += 4 + length;
  }
}

package loadstone.host;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** What an operation asks for: the key, then fields with values (writes) or names alone (reads), as {@link Answer} has them. */
final class Request {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);

  /** A fresh array for each operation: clients may keep parts of it beyond the call. */
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

  /** How many records a scan wants. */
  int records() {
    return count;
  }

  /** Whether a read or a scan wants all fields: then it names none. */
  boolean allFields() {
    return at == bytes.length;
  }

  /** Whether there is another part: a name, or the value after it. */
  boolean more() {
    return at < bytes.length;
  }

  /** Where the next part begins. */
  int part() {
    return at + 4;
  }

  /** The length of the next part. */
  int partLength() {
    return (int) INT.get(bytes, at);
  }

  /** Goes beyond the next part, which has this length. */
  void skip(int length) {
    at += 4 + length;
  }
}

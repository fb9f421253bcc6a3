package loadstone.host;

/** What an operation asks for: the key, then fields with values (writes) or names alone (reads), as {@link Answer} has them. */
final class Request {
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
    return (bytes[at] & 0xff) << 24 | (bytes[at + 1] & 0xff) << 16 | (bytes[at + 2] & 0xff) << 8 | bytes[at + 3] & 0xff;
  }

  /** Goes beyond the next part, which has this length. */
  void skip(int length) {
    at += 4 + length;
  }
}

package loadstone.host;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * The result of an operation, in the engine's form of a record: repeated
 * [int32 name length][name][int32 value length][value], all numbers big-endian. The records of a scan are
 * [int32 key length][key][int32 record length][record].
 */
final class Answer {
  private byte[] bytes = new byte[4096];
  private int length;

  void clear() {
    length = 0;
  }

  int length() {
    return length;
  }

  /** Copies the answer into the engine's memory, which must have room for it. */
  void copyTo(ByteBuffer buffer) {
    buffer.put(0, bytes, 0, length);
  }

  void field(byte[] name, byte[] value) {
    field(name, 0, name.length, value, 0, value.length);
  }

  void field(byte[] name, int nameAt, int nameLength, byte[] value, int valueAt, int valueLength) {
    part(name, nameAt, nameLength);
    part(value, valueAt, valueLength);
  }

  /** Begins a record of a scan. Returns its position, which {@link #endRecord} needs. */
  int beginRecord(byte[] key, int keyAt, int keyLength) {
    part(key, keyAt, keyLength);
    room(4);
    length += 4;
    return length;
  }

  void endRecord(int place) {
    number(place - 4, length - place);
  }

  private void part(byte[] source, int at, int count) {
    room(4 + (long) count);
    number(length, count);
    System.arraycopy(source, at, bytes, length + 4, count);
    length += 4 + count;
  }

  private void number(int at, int value) {
    bytes[at] = (byte) (value >>> 24);
    bytes[at + 1] = (byte) (value >>> 16);
    bytes[at + 2] = (byte) (value >>> 8);
    bytes[at + 3] = (byte) value;
  }

  private void room(long more) {
    long needed = length + more;
    if (needed > bytes.length) {
      if (needed > Integer.MAX_VALUE - 8) {
        throw new IllegalStateException("an answer of more than 2 GiB");
      }
      bytes = Arrays.copyOf(bytes, (int) Math.min(Math.max(needed, 2L * bytes.length), Integer.MAX_VALUE - 8));
    }
  }
}

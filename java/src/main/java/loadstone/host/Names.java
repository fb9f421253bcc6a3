package loadstone.host;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Caches conversions of field names to strings and back: a workload has few names, mostly in the same places. */
final class Names {
  private static final int SLOTS = 256;
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.nativeOrder());

  // The last name in each place: the string, its length, and the eight bytes of the request that end with it.
  private final String[] last = new String[SLOTS];
  private final int[] lengths = new int[SLOTS];
  private final long[] ends = new long[SLOTS];

  private final byte[][] bytes = new byte[SLOTS][];
  private final String[] strings = new String[SLOTS];
  private final String[] asked = new String[SLOTS];
  private final byte[][] answers = new byte[SLOTS][];

  /** The name in part number {@code place} of a request. */
  String string(int place, byte[] source, int at, int length) {
    int end = at + length;
    if (place >= SLOTS || length > Long.BYTES || end < Long.BYTES) {
      return string(source, at, length);
    }
    // For a name of fewer than eight bytes, the preceding bytes are also compared. At worst, a name is created again.
    long bytes = (long) LONG.get(source, end - Long.BYTES);
    if (length != lengths[place] || bytes != ends[place] || last[place] == null) {
      lengths[place] = length;
      ends[place] = bytes;
      last[place] = string(source, at, length);
    }
    return last[place];
  }

  String string(byte[] source, int at, int length) {
    int hash = 0;
    for (int i = at; i < at + length; i++) {
      hash = 31 * hash + source[i];
    }
    int slot = (hash ^ hash >>> 8) & SLOTS - 1;
    byte[] known = bytes[slot];
    if (known != null && Arrays.equals(known, 0, known.length, source, at, at + length)) {
      return strings[slot];
    }
    bytes[slot] = Arrays.copyOfRange(source, at, at + length);
    return strings[slot] = new String(source, at, length, StandardCharsets.UTF_8);
  }

  byte[] bytes(String name) {
    int hash = name.hashCode();
    int slot = (hash ^ hash >>> 8) & SLOTS - 1;
    if (!name.equals(asked[slot])) {
      asked[slot] = name;
      answers[slot] = name.getBytes(StandardCharsets.UTF_8);
    }
    return answers[slot];
  }
}

package loadstone.host;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The strings of field names and back, made once: a workload has few. */
final class Names {
  private static final int SLOTS = 256;

  private final byte[][] bytes = new byte[SLOTS][];
  private final String[] strings = new String[SLOTS];
  private final String[] asked = new String[SLOTS];
  private final byte[][] answers = new byte[SLOTS][];

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

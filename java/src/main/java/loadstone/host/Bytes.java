package loadstone.host;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import site.ycsb.ByteIterator;

/** A value for a binding: a part of the request, with all methods that bindings use to read values. */
final class Bytes extends ByteIterator {
  private final byte[] bytes;
  private final int start;
  private final int end;
  private int at;

  Bytes(byte[] bytes, int start, int length) {
    this.bytes = bytes;
    this.start = start;
    this.end = start + length;
    this.at = start;
  }

  @Override
  public boolean hasNext() {
    return at < end;
  }

  @Override
  public byte nextByte() {
    return bytes[at++];
  }

  @Override
  public int nextBuf(byte[] target, int offset) {
    int count = Math.min(target.length - offset, end - at);
    System.arraycopy(bytes, at, target, offset, count);
    at += count;
    return offset + count;
  }

  @Override
  public long bytesLeft() {
    return end - at;
  }

  @Override
  public void reset() {
    at = start;
  }

  @Override
  public byte[] toArray() {
    byte[] rest = Arrays.copyOfRange(bytes, at, end);
    at = end;
    return rest;
  }

  @Override
  public String toString() {
    return new String(bytes, at, end - at, StandardCharsets.UTF_8);
  }
}

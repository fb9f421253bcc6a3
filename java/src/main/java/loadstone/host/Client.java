package loadstone.host;

import java.nio.ByteBuffer;

/** One client of the engine. Only one thread uses it. */
abstract class Client {
  // The engine's numbers for operations.
  private static final int READ = 0;
  private static final int SCAN = 1;
  private static final int INSERT = 2;
  private static final int UPDATE = 3;
  private static final int DELETE = 4;
  private static final int CLEANUP = 5;
  private static final int FETCH = 6;

  protected final Answer answer = new Answer();
  private ByteBuffer buffer;
  private String message;

  /** Sets the memory that is shared with the engine from now on. */
  final void share(ByteBuffer memory) {
    buffer = memory;
  }

  /**
   * Performs one operation. Returns 1 + the outcome's ordinal in the low 8 bits, and the length of the answer above
   * them. If the answer is longer than the shared memory, returns only the length, negated; FETCH then copies the
   * answer into larger memory.
   */
  final long call(int operation, int keyLength, int length, int count) throws Exception {
    if (operation == FETCH) {
      return done(Outcome.OK);
    }
    answer.clear();
    byte[] bytes = new byte[length];
    buffer.get(0, bytes, 0, length);
    Request request = new Request(bytes, keyLength, count);
    if (operation == CLEANUP) {
      return done(cleanup());
    }
    begins();
    try {
      return done(
          switch (operation) {
            case READ -> read(request);
            case SCAN -> scan(request);
            case INSERT -> insert(request);
            case UPDATE -> update(request);
            case DELETE -> delete(request);
            default -> throw new IllegalArgumentException("operation " + operation);
          });
    } finally {
      ends();
    }
  }

  /** Called when an operation on a record begins. */
  protected void begins() {}

  /** Called when the operation has finished. An exception thrown here replaces an exception of the operation. */
  protected void ends() throws Exception {}

  private long done(Outcome outcome) {
    int length = outcome == Outcome.OK ? answer.length() : 0;
    if (length > buffer.capacity()) {
      return -length;
    }
    if (length > 0) {
      answer.copyTo(buffer);
    }
    return (long) length << 8 | outcome.ordinal() + 1;
  }

  /** The result of an operation that threw an exception. */
  final long fail(Throwable thrown) {
    message = ErrorMessage.format(thrown);
    return outcome(thrown).ordinal() + 1;
  }

  /** The outcome of an operation that the host itself refused, with the reason as the message. */
  protected final Outcome refuse(Outcome outcome, String reason) {
    message = reason;
    return outcome;
  }

  /** The message of the last failure. It is returned only once. */
  String takeMessage() {
    String last = message;
    message = null;
    return last;
  }

  /** The outcome that corresponds to an exception. */
  protected Outcome outcome(Throwable thrown) {
    return Outcome.ERROR;
  }

  abstract void connect() throws Exception;

  abstract Outcome read(Request request) throws Exception;

  abstract Outcome scan(Request request) throws Exception;

  abstract Outcome insert(Request request) throws Exception;

  abstract Outcome update(Request request) throws Exception;

  abstract Outcome delete(Request request) throws Exception;

  abstract Outcome cleanup() throws Exception;
}

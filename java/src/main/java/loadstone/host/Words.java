package loadstone.host;

/** The message of an exception, in one line. */
final class Words {
  private static final int LONGEST = 500;

  private Words() {}

  /** Class and message of an exception, and of its first cause. */
  static String of(Throwable thrown) {
    Throwable first = thrown;
    // The chain of causes may be a cycle.
    for (int depth = 0; first.getCause() != null && depth < 100; depth++) {
      first = first.getCause();
    }
    return first == thrown ? one(thrown) : one(thrown) + "; caused by " + one(first);
  }

  private static String one(Throwable thrown) {
    String message = thrown.getMessage();
    String name = thrown.getClass().getName();
    if (message == null || message.isBlank()) {
      return name;
    }
    String line = message.strip().replaceAll("\\s*\\R\\s*", " ");
    return name + ": " + (line.length() > LONGEST ? line.substring(0, LONGEST) + "…" : line);
  }
}

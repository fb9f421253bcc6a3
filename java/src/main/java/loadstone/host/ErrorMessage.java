package loadstone.host;

/** Formats the message of an exception as one line. */
final class ErrorMessage {
  private static final int LONGEST = 500;

  private ErrorMessage() {}

  /** The class and the message of an exception and of its root cause. */
  static String format(Throwable thrown) {
    Throwable root = thrown;
    // Causes may form a cycle.
    for (int depth = 0; root.getCause() != null && depth < 100; depth++) {
      root = root.getCause();
    }
    return root == thrown ? formatSingle(thrown) : formatSingle(thrown) + "; caused by " + formatSingle(root);
  }

  private static String formatSingle(Throwable thrown) {
    String message = thrown.getMessage();
    String name = thrown.getClass().getName();
    if (message == null || message.isBlank()) {
      return name;
    }
    String line = message.strip().replaceAll("\\s*\\R\\s*", " ");
    return name + ": " + (line.length() > LONGEST ? line.substring(0, LONGEST) + "…" : line);
  }
}

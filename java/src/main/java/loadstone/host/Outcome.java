package loadstone.host;

/** How an operation ended. The engine asks for these names once and then knows each by its place. */
enum Outcome {
  OK,
  ERROR,
  NOT_FOUND,
  NOT_IMPLEMENTED,
  UNEXPECTED_STATE,
  BAD_REQUEST,
  FORBIDDEN,
  SERVICE_UNAVAILABLE,
  BATCHED_OK,
  TIMEOUT,
  NO_SPACE;

  private static final Outcome[] ALL = values();

  /** The outcome of this name; ERROR if there is none. */
  static Outcome named(String name) {
    for (Outcome outcome : ALL) {
      if (outcome.name().equals(name)) {
        return outcome;
      }
    }
    return ERROR;
  }
}

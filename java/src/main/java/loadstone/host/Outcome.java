package loadstone.host;

/** The outcome of an operation. The engine requests the names once, and then uses the ordinals. */
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

  /** The outcome with this name; ERROR if there is none. */
  static Outcome parse(String name) {
    for (Outcome outcome : ALL) {
      if (outcome.name().equals(name)) {
        return outcome;
      }
    }
    return ERROR;
  }
}

package loadstone.host;

/** Refuses a system that cannot be used, with a message for the user and a remedy. */
final class Refusal extends Exception {
  private static final long serialVersionUID = 1;

  final String hint;

  Refusal(String message, String hint) {
    super(message);
    this.hint = hint;
  }
}

package loadstone.host;

/** A system that cannot be used, in words for the user, with what to do about it. */
final class Refusal extends Exception {
  private static final long serialVersionUID = 1;

  final String hint;

  Refusal(String message, String hint) {
    super(message);
    this.hint = hint;
  }
}

package loadstone.host;

/** Facts as lines of name, tab, value. */
final class Facts {
  private final StringBuilder lines = new StringBuilder();

  void add(String name, String value) {
    lines.append(name).append('\t').append(value).append('\n');
  }

  @Override
  public String toString() {
    return lines.toString();
  }
}

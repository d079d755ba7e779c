package dev.berth.plugin;

/** The call that a method answers. */
public record Call(Profile profile, PodKey key) {
  static final ThreadLocal<Call> CURRENT = new ThreadLocal<>();

  /**
   * The call that is being answered.
   *
   * @throws IllegalStateException outside the methods that answer calls
   */
  public static Call current() {
    Call current = CURRENT.get();
    if (current == null) {
      throw new IllegalStateException("no call is being answered");
    }
    return current;
  }
}

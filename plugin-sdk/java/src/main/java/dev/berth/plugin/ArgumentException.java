package dev.berth.plugin;

import java.util.List;

/** What a check of {@link Arguments} finds wrong. */
public final class ArgumentException extends Exception {
  private static final long serialVersionUID = 1;

  private final List<String> problems;

  /** One thing that is wrong, as "path: what is wrong". */
  public ArgumentException(String path, String problem) {
    this(List.of(path + ": " + problem));
  }

  /** Several, each as "path: what is wrong". */
  public ArgumentException(List<String> problems) {
    super(String.join("; ", problems));
    this.problems = List.copyOf(problems);
  }

  List<String> problems() {
    return problems;
  }
}

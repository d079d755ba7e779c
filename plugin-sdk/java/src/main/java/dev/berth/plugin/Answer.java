package dev.berth.plugin;

/** What may be answered where a verdict alone does not say it all. */
public final class Answer {
  private Answer() {}

  /** The answers of Reserve and PreBind. */
  public sealed interface ToReserve permits Status, MetadataPatch {}

  /** The answers of Permit. */
  public sealed interface ToPermit permits Status, Wait {}

  /** The answers of PostFilter. */
  public sealed interface ToPostFilter permits Status, Nomination {}

  /** The answers of GeneratePlacements. */
  public sealed interface ToGeneratePlacements permits Status, Placements {}

  /** The answers of PodGroupPostFilter. */
  public sealed interface ToPodGroupPostFilter permits Status, GroupPreemptions {}
}

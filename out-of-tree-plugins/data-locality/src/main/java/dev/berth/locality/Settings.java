package dev.berth.locality;

import dev.berth.plugin.Argument;
import dev.berth.plugin.ArgumentException;
import dev.berth.plugin.Profile;

/** What profiles configure. */
record Settings(
    @Argument("what a data set is worth that is cached so near, in percent") Weights weights,
    @Argument("the label of nodes that names their rack") String rackLabel,
    @Argument("the label of nodes that names their zone") String zoneLabel,
    @Argument(
            value = "how much of a required data set has to be cached, in percent",
            minimum = 1,
            maximum = 100)
        int requiredPercent) {

  static final Settings DEFAULT =
      new Settings(
          new Weights(100, 50, 20),
          "topology.kubernetes.io/rack",
          "topology.kubernetes.io/zone",
          100);

  /** Data on the node itself, on others of its rack, on others of its zone. */
  record Weights(
      @Argument(value = "on the node", minimum = 0, maximum = 100) int node,
      @Argument(value = "in its rack", minimum = 0, maximum = 100) int rack,
      @Argument(value = "in its zone", minimum = 0, maximum = 100) int zone) {}

  /** Data that is nearer can't be worth less. */
  static void check(Profile profile, Settings settings) throws ArgumentException {
    Weights weights = settings.weights;
    if (weights.node < weights.rack || weights.rack < weights.zone) {
      throw new ArgumentException("weights", "expected node >= rack >= zone");
    }
  }
}

"""Floor 2: KubeSchedulerConfiguration: types, decoding, defaults, validation, feature gates."""

"""Floor 4: candidates and victims for a pod that fits nowhere."""

"""Between plugins and cycles: what plugins say of a pod, row by row, turned into verdicts, scores, a choice."""

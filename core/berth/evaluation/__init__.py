"""Between plugins and cycles: what plugins say of a pod, row by row, made into verdicts, scores, a choice."""

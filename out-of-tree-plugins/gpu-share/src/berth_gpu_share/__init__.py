"""gpu-share: share GPUs between pods."""

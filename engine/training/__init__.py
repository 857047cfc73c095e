"""Training: the loop, its metrics, checkpoints and memory."""

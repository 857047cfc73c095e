"""Training: data sets, the loop, its metrics, checkpoints and memory."""

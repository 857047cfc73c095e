"""What the command line does without a window. Nothing here imports torch or Qt."""

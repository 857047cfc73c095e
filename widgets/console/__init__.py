"""The Python console: input, output, history, completion and variables."""

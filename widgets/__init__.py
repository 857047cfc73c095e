"""Qt views of plain data. Never imports torch, never imports app."""

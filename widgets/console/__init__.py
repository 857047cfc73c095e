"""The Python console: what is typed, what comes back."""

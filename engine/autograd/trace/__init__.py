"""A finished recording that is stepped through forwards and backwards, by calls or by lines.

Not here: making the recording (`recording`).
"""

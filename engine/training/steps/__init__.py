"""One optimizer step: its phases in the order of the set-up, and the numbers of each.

Not here: which steps there are (`training/loop`), what holds a run (`training/watchpoints`).
"""

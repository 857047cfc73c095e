"""Notes about what looks wrong in the user's own code: one line that opens to evidence and a fix.

Not here: where they stand (`console`, `training`), errors that torch raises
(`shapes.failure_view`).
"""

"""The training loops of the user's own code, seen by torch's optimizer hooks: the figures of their
steps, as Train has them, what they log, and holding them; the figures of watched modules.

Not here: Train's loop (`training`), cells (`console`), what looks wrong in a loop (`advice`).
"""

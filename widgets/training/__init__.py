"""The Train workspace: the set-up form, the run bar, and live plots.

Not here: training itself (`engine.training`).
"""

"""The phases of a step as they run by hand, and why a run is held.

Not here: the settings of both (`training/settings/watch_form`).
"""

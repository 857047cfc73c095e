"""What the user has chosen, in whichever view: references, the selection, what leads to what.

Not here: how a view shows it (its presenter), the ways to other views (`presenters/show_in.py`).
"""

"""Limits that hold a run at a step, and the search for the first number that is not finite.

Not here: the settings (`project/document.HoldWhen`), the words of a run that ends (`failures`).
"""

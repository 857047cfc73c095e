"""Sweeps over settings: what varies, as it is written, and the values of a trial in a project.

Not here: which values a trial has (`engine/training/study.py`).
"""

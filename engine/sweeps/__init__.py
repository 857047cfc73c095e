"""Sweeps: which values a trial has, and whether it goes on, by Optuna (the extra `sweep`).

Not here: what can be varied (`project/sweep.py`), and the training of a trial (`handlers`).
"""

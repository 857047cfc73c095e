"""Sweeps: trials one after the other in this process, or several at once in processes of their own.

Not here: which values a trial has (`engine/training/study.py`).
"""

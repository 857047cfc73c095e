"""The settings of a run as forms: data, loss or step, optimizer, run.

Not here: the view that holds them (`widgets/training/train_view.py`).
"""

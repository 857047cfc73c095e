"""The objective of a run: batches, the loss, and the step that the user wrote.

Not here: the loop (`training/loop.py`), the data sets themselves (`engine/datasets`).
"""

"""The memory of one step: the curve over its operations, and the tensors that hold it.

Not here: the plot of the process's memory over a run (`training/plots`).
"""

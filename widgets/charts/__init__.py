"""Pictures of numbers over two axes: lines, a heat map, stacked areas.

Not here: the live plots of a run (`widgets/training/plots`), which grow point by point.
"""

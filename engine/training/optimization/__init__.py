"""The use of gradients in a step: clipping, autocast, optimizer, scheduler, and their state.

Not here: making them from their names (`training/components`), the loop.
"""

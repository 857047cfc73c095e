"""Operations explained before they run, and the form that creates a tensor.

Not here: pictures of broadcasting, reductions and the like (`shapes`).
"""

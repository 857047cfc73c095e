"""Operations before they run: the line, what each will give, and the form that makes a tensor.

Not here: pictures of shapes that meet (`shapes`).
"""

"""Operations on named variables, explained: what one will give, its shapes, why it failed, and the
memory that its tensors share.

Not here: reading a tensor (`tensors`), the names of the variables (`console`), gradients
(`autograd`).
"""

"""Jacobians, gradcheck and gradient flow.

Not here: the rule of one node (`rules`).
"""

"""Jacobians, Hessians, gradcheck, and the gradients of each layer while a model trains.

Not here: the rule of a single node (`rules`, `formulas`).
"""

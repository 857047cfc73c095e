"""Jacobians, Hessians, gradcheck, and the flow of gradients through layers while a model trains.

Not here: the rule of a single node (`rules`, `formulas`).
"""

"""The rule of one node at work: checked by finite differences, and listed operator by operator.

Not here: the rules as formulas (`formulas`).
"""

"""The rule of one node as torch runs it: checked by finite differences, or listed by operators.

Not here: the rules as formulas (`formulas`).
"""

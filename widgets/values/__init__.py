"""The numbers of a tensor: table, picture, lines, histogram, bits, and cards of single values.

Not here: its storage (`memory`).
"""

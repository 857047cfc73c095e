"""The Autograd workspace: forward, graph and backward side by side, and the usual mistakes.

Not here: its parts (`graph`, `backward`, `trace`, `derivatives`, `rules`).
"""

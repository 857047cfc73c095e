"""Recordings of what torch ran, and from where: calls, lines, modules, threads, values and writes.

Not here: code of the console (`console`), the graph that autograd made (`autograd.graph`).
"""

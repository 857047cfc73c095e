"""What torch ran and where it came from: calls, lines, modules, threads, values and writes.

Not here: code of the console (`console`), the graph that autograd made (`autograd.graph`).
"""

"""The engine inside the user's own process: a script, a notebook or a rank that calls
`tensorlab.watch`. Windows attach to it and leave; the process goes on as it would without.

Not here: how a window finds it (`connecting`), and what is asked of it (`handlers`).
"""

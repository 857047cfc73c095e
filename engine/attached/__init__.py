"""The engine inside the user's own process: a script, a notebook or a rank that calls
`tensorlab.watch`. Windows attach to it and leave; the process computes the same bits without them.

Not here: how a window finds it (`connecting`), and what is asked of it (`handlers`).

`watching` is what the script calls. A window that attaches gets an `attached_session`: it answers
commands in the user's thread, after an optimizer step and while the script is held, and those that
only read on a thread of its own. `allowed` lists the commands that are answered at all.
"""

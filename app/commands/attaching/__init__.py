"""Commands about processes that windows attach to: calling one that listens, running a script
watched, an engine that listens, the way to it.

Not here: the window (`app.application`), and what happens in the script (`engine.attached`).
"""

"""All of Tensor Lab's work with torch. It imports no Qt, and can be used from a script or a
notebook.

Not here: the window (`app`) and its views (`widgets`). Of the engine they import the messages
(`protocol`), the document (`project`) and the ways to a process (`process`, `connecting`), none of
which imports torch.

`server.serve` is the function that runs in the engine's process, `server.session` what answers
commands there. Every process is started inside `system.spawning.safe_spawn`.
"""

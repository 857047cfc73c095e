"""Answers to the window's commands: one function per command, which calls the other rooms.

Not here: torch's own work. A command names its handler; `session` finds it and runs it.

State that a room keeps between commands is a dataclass in its `state.py` and a property of
`engine/lab/lab.py`: `lab.backward` is the `BackwardState` of `autograd/backward/state.py`.
"""

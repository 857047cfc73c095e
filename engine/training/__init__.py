"""Training: the loop, its metrics, checkpoints and memory.

Not here: the folder of a run (`runs`), and loops of the user's own (`loops`).

The `loop` runs a step phase by phase (`steps`), as torch is told to run it (`execution`), and
watchpoints may hold it in between. To go to a step, back or on, a `TrainCommand` with `to_step`
repeats the steps from a state that was kept (`checkpoints.run_states`), bit for bit. `checks`,
`memory` and `landscape` work outside of a run, or between two of its steps.
"""

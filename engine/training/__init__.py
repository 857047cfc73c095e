"""Training: the loop, its metrics, checkpoints and memory. Not in it: the folder of a run, in
`runs`, and loops of the user's own, in `loops`."""

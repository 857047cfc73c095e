"""What looks wrong in a loop of the user's own, though torch does not complain: each with evidence
and a fix. Not here: the words for torch's errors (`tensors.error_help`, `tensors.failures`)."""

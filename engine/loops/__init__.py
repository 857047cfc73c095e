"""The training loops of the user's own code: the figures of their optimizer steps, and holding
them. Not here: the loop of Train (`training`), and the cells that run (`console`)."""

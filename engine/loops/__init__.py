"""The training loops of the user's own code: the figures of their optimizer steps, and holding
them; the figures of watched modules. Not here: Train's loop (`training`), cells (`console`)."""

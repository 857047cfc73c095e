"""The settings that the user chooses once, for all projects.

Not here: where it is kept (`app.settings`), and what comes of it (presenters).
"""

"""What the workspaces work on, as the user chooses and sees it.

Not here: the canvas (`canvas`), which edits one kind of subject.
"""

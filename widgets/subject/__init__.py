"""The subject of the workspaces, as the user chooses and sees it.

Not here: the canvas (`canvas`), which edits one kind of subject.
"""

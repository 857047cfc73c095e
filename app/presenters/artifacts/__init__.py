"""What ties the page Files to the engine, the subject and the console.

Not here: the project's own file (`app.files`).
"""

"""The guides: pages of Markdown with a list of their headings, and a search in all of them.

Not here: the pages themselves (`assets/guide`), and where they are opened (`app.presenters.guide`).
"""

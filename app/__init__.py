"""The program: its window, its command line, and the parts that connect both to the engine.

Not here: views of data (`widgets`), and all that needs torch (`engine`).

`run` paints Start, or a project's canvas, before it loads `application`, which makes all parts.
`workbench` is what each presenter gets: window, actions, store, history, selection, link, settings,
files.
"""

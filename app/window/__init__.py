"""The window's frame: rail, menus, banners, command palette, dialogs, and a page per workspace.

Not here: what happens when they are used (`presenters`), and views of a tensor, graph or model
(`widgets`).
"""

"""The window's frame: rail, menus, banners, command palette, dialogs, and a page per workspace.

In: Qt widgets that stand once in the window, and what the actions' table fills in. Not in: what
happens when they are used (`presenters`), and views of a tensor, graph or model (`widgets`).
"""

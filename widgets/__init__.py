"""Qt views of plain data: `show(...)` in, signals out. They import neither torch nor `app`.

Not here: what a signal leads to (`app.presenters`), and what the data mean (`engine`).

Every control is made by `make`; colours and fonts come from `theme`.
"""

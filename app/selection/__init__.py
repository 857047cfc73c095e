"""The user's selection, in whichever view: references, the selection, what leads to what.

Not here: how a view shows it (its presenter), the ways to other views (`presenters.show_in`).

A presenter calls `Selection.choose` when the user chooses in its view, and follows `changed`: it
lights there what `finding`, pure functions over the newest snapshots, says that the reference leads
to, and takes neither focus nor tab. A view that is in `Selection.views` ends its context menu with
"Show in"; `app.ways` lists where that leads.
"""

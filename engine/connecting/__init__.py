"""How a window and an engine in another process find each other and agree to talk: places,
listening, dialing, and the first messages. No torch: both sides import it.

Not here: what they say then (`protocol`), and the engine inside the user's process (`attached`).

`peer` is a window at the other end. An engine that windows come to and leave is
`engine/server/served.py`: `tensorlab serve` starts it, and through ssh `relay` leads to it.
"""

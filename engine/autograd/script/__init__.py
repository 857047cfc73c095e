"""What was done in backward passes as a Python program that leaves the same bits in `.grad`.

Not here: doing it (`backward`), the order of what was done (`console.journal`).
"""

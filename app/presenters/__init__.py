"""One presenter per workspace: widgets' signals in, edits and commands out, snapshots shown."""

"""The program: windows, actions, wiring."""

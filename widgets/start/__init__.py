"""The Start page: the ways into the program. No file is opened here and no engine is asked: the
page emits what the reader chose."""

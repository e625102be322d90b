"""The parts of pages that are too long for one file; each draws itself where it is called."""

"""The one core: pure operators over deltas, with the same code under every executor and store."""

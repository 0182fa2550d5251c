"""From log to views, without an engine: the epoch contract of design.md, section 2."""

"""The command ``viewkeeper``: a module a command; whatever is slow to import is imported inside the command."""

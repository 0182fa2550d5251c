"""The demo: a year of real flights as a stream of changes, and views kept fresh meanwhile."""

"""Tools that test views: an oracle, generators, a simulation by seed. They ship with the package, for users' own views."""

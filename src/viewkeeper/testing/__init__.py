"""Tools that test views: an oracle, generators, a simulation by seed; shipped for tests of users' own views."""

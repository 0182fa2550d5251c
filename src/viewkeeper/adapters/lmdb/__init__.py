"""The embedded store: a folder with two LMDB environments, shared by any number of processes of one machine."""

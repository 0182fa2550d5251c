"""The concrete stores behind the ports of `viewkeeper.store`."""

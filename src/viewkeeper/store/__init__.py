"""The key-value model that every adapter keeps to: spaces of ordered sub-databases, typed tables over them."""

"""The control plane: plans epochs, publishes them, fills new views. It stands beside the data path, never on it."""

"""What WINDOW and TOP-K share and are made of: partitions in order, frames, functions over frames."""

"""The algebra: typed rows with weights, their keys and their bytes. Knows Arrow and nothing above it."""

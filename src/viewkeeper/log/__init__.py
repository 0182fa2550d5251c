"""What happened, in order: the transaction log with before-images, positions in it, and what may be purged."""

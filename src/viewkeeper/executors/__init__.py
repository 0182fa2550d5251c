"""Ways to run an epoch: in this process, or as one fused Spark job. Both call the same circuit."""

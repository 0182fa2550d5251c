"""The Spark executor: one fused job an epoch, rows packed between its stages. Nobody else imports pyspark."""

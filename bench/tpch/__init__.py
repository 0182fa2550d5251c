"""TPC-H: its tables in our dialect, its 22 queries in Spark SQL, its data by tpchgen-cli, and streams of refreshes."""

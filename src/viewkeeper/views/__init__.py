"""What is kept: definitions, the catalog, published state and the rows that readers see."""

"""Statements that are evaluated when they are run: SELECT, INSERT, UPDATE, DELETE, MERGE and VERIFY."""

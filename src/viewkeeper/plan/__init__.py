"""From SQL to a maintenance plan: parse, resolve, type, rewrite, compile."""

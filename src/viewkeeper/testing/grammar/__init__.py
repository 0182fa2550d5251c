"""The grammar of drawn queries: a family of features is a file in ``families``; ``builder`` puts them together."""

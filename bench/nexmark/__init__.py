"""Nexmark, an auction house: its tables, a small seeded generator, and its queries but those that stream time binds."""

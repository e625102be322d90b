"""Simulated viewers of real films: the embedded sample, its planted story, and procedural data for load tests."""

"""The embedded datasets, simulated viewers of real films (with a planted story) and real ratings; procedural data for load tests."""

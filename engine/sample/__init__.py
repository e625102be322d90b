"""The embedded datasets (simulated viewers with a planted story, and real ratings of films); procedural data for load tests."""

"""The embedded datasets: simulated viewers of real films with a planted story, real ratings of films; procedural data for load tests."""

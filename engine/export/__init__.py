"""Model → bundle: graphs, index, map, checks, and the folder that appears as a whole."""

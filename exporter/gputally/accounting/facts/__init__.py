"""Facts of pods and nodes, from what was observed of them: lifetimes, outcomes, segments, clocks, models."""

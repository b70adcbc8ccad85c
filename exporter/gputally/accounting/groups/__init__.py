"""Groups of pods that work together, by the labels of their frameworks."""

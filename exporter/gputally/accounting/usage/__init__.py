"""Agent measurements, matched to pods and added to the totals."""

"""What agents measured, matched to pods and added to the totals."""

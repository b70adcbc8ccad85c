"""The checks of a posture, one file for each subject."""

"""The accounting rules: pure functions and one single-writer state. No I/O, no clock: time comes in as an argument."""

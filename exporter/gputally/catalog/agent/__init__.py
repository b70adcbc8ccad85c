"""The series of the agent."""

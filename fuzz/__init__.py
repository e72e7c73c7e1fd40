"""Fuzzing of everything that reads what somebody else wrote."""

"""Policies for ddl-cluster: placements, schedulings, and the compiled simulator that runs them (paper 001)."""

"""The audit of a cluster's log: the schedule that really ran, beside what others make of the same jobs."""

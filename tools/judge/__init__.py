"""One decision of a live cluster: snapshots read, judged and drawn."""

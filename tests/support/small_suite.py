"""A quick suite of a few seconds, to test the commands around it."""

from schedgap.catalogue.workload import Batch

ROWS = (Batch("quick", "tiny", 2, exact=("highs",), heuristics=("ff", "sjf-bco")),)

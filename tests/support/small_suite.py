"""A quick suite of a few seconds, to test the commands around it."""

from schedgap.benchmarks.descriptors import Batch

ROWS = (Batch("quick", "tiny", 2, exact=("highs",), heuristics=("ff", "sjf-bco")),)

"""hadar: heterogeneous gang scheduling with utilities (paper 002, Hadar and HadarE, sections III to VI)."""

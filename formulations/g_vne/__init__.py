"""g-vne: worker rings embedded into a network of servers and links (paper 004, GADGET, section V)."""

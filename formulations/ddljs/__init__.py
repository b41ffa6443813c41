"""ddljs: rings of workers over a horizon, utilities of accumulated work (paper 004, GADGET, section IV)."""

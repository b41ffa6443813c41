"""comm-contention: transfers on one link that slow each other down (paper 001, AdaDUAL)."""

"""gpu-sharing: gang jobs that share GPUs in pairs (paper 003, SJF-BSBF)."""

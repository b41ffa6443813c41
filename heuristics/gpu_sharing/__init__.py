"""Policies for gpu-sharing: SJF-BSBF, its variant, and the baselines of paper 003."""

"""ddl-cluster: training jobs whose all-reduces share the servers' links (paper 001)."""

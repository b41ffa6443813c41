"""A listing of Kubernetes read: nodes, pods, gangs of its schedulers, parts of devices, what waits without pods."""

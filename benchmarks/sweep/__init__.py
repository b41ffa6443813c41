"""Work of many pieces: processes or a cluster, a store, progress; resumed where it was interrupted."""

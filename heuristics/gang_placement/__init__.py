"""Rules of clusters' schedulers for gang-placement."""

"""The library for a host: tables of methods, and static pages."""

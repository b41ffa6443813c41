"""Tools: each answers one question of its users on top of the kit. Nothing imports a tool but a tool above it."""

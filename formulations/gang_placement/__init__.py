"""Which waiting gangs go where, in one scheduling decision."""

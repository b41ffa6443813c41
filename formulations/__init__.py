"""What a problem is: one folder per problem, and what all of them share in :mod:`.common`."""

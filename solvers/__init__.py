"""How models are solved exactly: engines know no problem, :mod:`.exact` has one file per problem."""

"""What proves an optimum or a bound to someone who trusts no solver, and its independent checker."""

"""A theorem of anyone tried on instances of anyone: drawn, hunted, shrunk, in exact arithmetic."""

"""What every problem shares: errors, exact numbers, instances, check reports, declarative models."""

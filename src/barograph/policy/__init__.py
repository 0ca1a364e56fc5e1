"""What a policy is, and which policies there are."""

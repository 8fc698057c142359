"""Tables of resource groups without Spark: usage, limits, members, groups and what they are attached to."""

"""When connections are read: a second query over the marks of a throttle job. No engine."""

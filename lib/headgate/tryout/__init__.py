"""`headgate try`: what conf files would do to a trace, in seconds and without Spark."""

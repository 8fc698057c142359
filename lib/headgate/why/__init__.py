"""Why something is held: one answer, for the command line, over HTTP and for the page."""

"""The throttle protocol over streams: rows of inputs and marks in, decisions and metrics out (PIP-385). No engine."""

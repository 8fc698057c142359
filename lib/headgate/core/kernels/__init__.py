"""Array forms of the core's hot rules, compiled with numba (`compiled`). Each equals the readable form by test."""

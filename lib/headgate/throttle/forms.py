"""The form in which the rules run: compiled over arrays, or as they read."""

from functools import cache

from headgate.throttle.engine import Engine


@cache
def engine_of(kernel: str) -> Engine:
    """The engine that [operator] kernel names; `numba` loads the compiler, and compiles what is not compiled yet."""
    if kernel == "python":
        from headgate.throttle.readable_engine import run_readable  # noqa: PLC0415

        return run_readable
    from headgate.throttle.array_engine import run_arrays, warm_up  # noqa: PLC0415

    warm_up()
    return run_arrays

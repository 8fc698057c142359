"""Rules that no job runs, as one object each: vectors replay them, and tests compare them with what jobs run."""

#!/usr/bin/env bash
# The Python that Spark starts a job with: .venv's, after a note that Spark came so far. What fails later is the job's to report.
: >"$HEADGATE_DRIVER_STARTED"
# Linux: if Spark is killed, so is the job's Python. Alone it could still write to tables while the next start replays its batch.
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL "$HEADGATE_PYTHON" "$@"; fi
exec "$HEADGATE_PYTHON" "$@"

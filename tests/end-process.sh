# How the process of a real broker is ended; scripts source this.
# shellcheck shell=bash

# PID SECONDS: asks it to end, and kills it where it has not by then.
end_process() {
  local quarter
  kill "$1"
  for ((quarter = 0; quarter < 4 * $2; quarter++)); do kill -0 "$1" 2>/dev/null || break; sleep 0.25; done
  if kill -0 "$1" 2>/dev/null; then kill -9 "$1"; fi
}

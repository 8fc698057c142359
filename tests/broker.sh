# The life of a real broker for tests. Scripts source this as their last line; it does what their first argument says: start | stop | status.
# They set `run` (folder for data, logs and pid), `timeout` (seconds to wait), `place` (where the broker listens), `ready` and `unready` (words
# for its states), and define is_ready, and launch, which starts it in the background.
# shellcheck shell=bash
. "$root/tests/end-process.sh"
pidfile=$run/pid

running() { [[ -s $pidfile ]] && kill -0 "$(<"$pidfile")" 2>/dev/null; }

start() {
  if running; then echo "already running, pid $(<"$pidfile")"; return; fi
  launch
  echo $! >"$pidfile"
  local end=$((SECONDS + timeout))
  until is_ready; do
    running || { echo "the broker ended; last lines of $run/out.log:" >&2; tail -n 15 "$run/out.log" >&2; rm -f "$pidfile"; exit 1; }
    ((SECONDS < end)) || { echo "not $ready after $timeout s, see $run/out.log" >&2; stop; exit 1; }
    sleep 0.25
  done
  echo "ready: $place (pid $(<"$pidfile"))"
}

stop() {
  if ! running; then rm -f "$pidfile"; echo "not running"; return; fi
  end_process "$(<"$pidfile")" 30
  rm -f "$pidfile"
  echo "stopped"
}

status() {
  if running && is_ready; then echo "$ready, pid $(<"$pidfile"), $place"
  elif running; then echo "$unready, pid $(<"$pidfile")"; exit 2
  else echo "not running"; exit 1
  fi
}

case ${1:-} in
  start | stop | status) "$1" ;;
  *) echo "usage: $0 start|stop|status" >&2; exit 64 ;;
esac

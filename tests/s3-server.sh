#!/usr/bin/env bash
# A real S3-compatible server (S3Proxy, files in a folder) on loopback, for tests. Needs what headgate needs: Python and Java.
#   tests/s3-server.sh start | stop | status
# start fetches the jars once through Spark's own resolver (32 MB), starts the server in the background and waits until it is ready.
# Environment (all optional):
#   S3_RUN                folder for data, logs and pid         .cache/s3-run
#   S3_PORT                                                     19000
#   S3_IDENTITY, S3_CREDENTIAL    the one key that is let in    test, secret
#   S3_START_TIMEOUT      seconds to wait                       60
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
run=${S3_RUN:-$root/.cache/s3-run}
port=${S3_PORT:-19000}
timeout=${S3_START_TIMEOUT:-60}
place=http://127.0.0.1:$port ready=ready unready=starting
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

is_ready() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

launch() {
  . "$root/scripts/find-python.sh"
  local jars sdk
  jars=$("$python" "$root/scripts/bootstrap.py" "$root/scripts/jars.py" s3-server)
  sdk=$("$python" "$root/scripts/bootstrap.py" "$root/scripts/jars.py" s3) # it names classes of the SDK, as it can stand before S3 as well
  rm -rf "$run"
  mkdir -p "$run/data"
  cat >"$run/server.properties" <<EOF
s3proxy.endpoint=$place
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity=${S3_IDENTITY:-test}
s3proxy.credential=${S3_CREDENTIAL:-secret}
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir=$run/data
EOF
  # Its jar has no such file, and logback then writes every byte of every request.
  cat >"$run/logback.xml" <<'EOF'
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %-5level %logger: %msg%n</pattern></encoder>
  </appender>
  <root level="warn"><appender-ref ref="out"/></root>
</configuration>
EOF
  nohup "$java" -Xms64m -Xmx256m -XX:+UseSerialGC -Dlogback.configurationFile="$run/logback.xml" -cp "$jars/*:$sdk/*" org.gaul.s3proxy.Main --properties "$run/server.properties" \
    >"$run/out.log" 2>&1 </dev/null &
}

. "$root/tests/broker.sh"

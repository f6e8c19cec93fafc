#!/usr/bin/env bash
# Starts or stops the servers that tests use: databases.sh start|stop [postgres mariadb mysql neo4j tinyproxy identity]
# One that answers already is left as it is, and is not stopped. Says how long each took. With "start", the exit code
# is 1 where one cannot be had, after the others were tried: its tests are skipped then, with the reason.
set -uo pipefail
verb=${1:?start or stop}
shift
[ $# -gt 0 ] || set -- postgres mariadb mysql neo4j tinyproxy identity
failed=0
for name in "$@"; do
    began=$SECONDS
    if bash "$(dirname "$0")/$name.sh" "$verb"; then
        echo "$name: $verb, $((SECONDS - began)) s"
    else
        echo "$name: cannot $verb, after $((SECONDS - began)) s" >&2
        failed=1
    fi
done
exit $failed

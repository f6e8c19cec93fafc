#!/usr/bin/env bash
# PostgreSQL with pgvector on 127.0.0.1:5432, superuser postgres without a password: postgres.sh start|stop
set -euo pipefail
. "$(dirname "$0")/shared.sh"
port=5432
data="$state/postgres"
owner=$(id -un)
[ "$owner" != root ] || owner=postgres
bin() { find /usr/lib/postgresql -name initdb -printf '%h\n' 2>/dev/null | sort -V | tail -1; }

start() {
    [ -n "$(bin)" ] || need postgresql
    as_root rm -rf "$data"
    install -d -m 700 -o "$owner" "$data"
    as_user "$owner" "$(bin)/initdb" -D "$data" -A trust -U postgres --encoding=UTF8 --no-locale >/dev/null
    as_user "$owner" "$(bin)/pg_ctl" -D "$data" -w -l "$data/log" \
        -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$data -c fsync=off" start >/dev/null
    await $port PostgreSQL "$data/log"
}

stop() {
    [ ! -e "$data/postmaster.pid" ] || as_user "$owner" "$(bin)/pg_ctl" -D "$data" -m immediate stop >/dev/null || true
    as_root rm -rf "$data"
}

vectors() { bash "$(dirname "$0")/pgvector.sh" || echo "PostgreSQL is without pgvector" >&2; }

case $1 in start) answers $port || start && vectors ;; stop) stop ;; esac

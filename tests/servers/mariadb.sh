#!/usr/bin/env bash
# MariaDB on 127.0.0.1:3306, root without a password: mariadb.sh start|stop
set -euo pipefail
. "$(dirname "$0")/shared.sh"
port=3306
data="$state/mariadb"
owner=$(id -un)
[ "$owner" != root ] || owner=mysql

start() {
    command -v mariadbd >/dev/null || need mariadb-server
    as_root rm -rf "$data"
    install -d -o "$owner" "$data"
    as_user "$owner" mariadb-install-db --no-defaults --datadir="$data" \
        --auth-root-authentication-method=normal --skip-test-db >/dev/null
    in_background "$state/mariadb.log" "$(command -v bash)" -c '. "$0"; as_user "$@"' "$(dirname "$0")/shared.sh" \
        "$owner" mariadbd --no-defaults --datadir="$data" --bind-address=127.0.0.1 --port=$port \
        --socket="$data/socket" --pid-file="$data/pid"
    await $port MariaDB "$state/mariadb.log"
}

stop() {
    end "$data/pid"
    as_root rm -rf "$data" "$state/mariadb.log"
}

case $1 in start) answers $port || start ;; stop) stop ;; esac

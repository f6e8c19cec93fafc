#!/usr/bin/env bash
# MySQL itself on 127.0.0.1:13306, root without a password: mysql.sh start|stop
# Debian's stable suites have MariaDB only, so a tree of its unstable suite is made once and the server runs inside it.
set -euo pipefail
. "$(dirname "$0")/shared.sh"
port=13306
tree="$trees/mysql"
data="/srv/$(basename "$state")"

make_tree() {
    command -v debootstrap >/dev/null || need debootstrap
    as_root rm -rf "$tree.new"
    as_root debootstrap --variant=minbase sid "$tree.new" >"$state/mysql-tree.log"
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$tree.new/usr/sbin/policy-rc.d" >/dev/null
    as_root chmod +x "$tree.new/usr/sbin/policy-rc.d"
    as_root chroot "$tree.new" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends mysql-server-core >>"$state/mysql-tree.log" 2>&1
    as_root mv "$tree.new" "$tree"
}

start() {
    [ -d "$tree" ] || make_tree
    as_root rm -rf "$tree$data"
    as_root install -d -o 65534 "$tree$data" # nobody's
    local mysqld=(chroot "$tree" mysqld --no-defaults --user=nobody --datadir="$data/data")
    as_root "${mysqld[@]}" --initialize-insecure 2>"$state/mysql.log"
    in_background "$state/mysql.log" "$(command -v bash)" -c '. "$0"; as_root "$@"' "$(dirname "$0")/shared.sh" \
        "${mysqld[@]}" --bind-address=127.0.0.1 --port=$port --mysqlx=OFF --socket="$data/socket" \
        --pid-file="$data/pid" --secure-file-priv= --skip-log-bin --federated --innodb-flush-log-at-trx-commit=0
    await $port MySQL "$state/mysql.log"
}

stop() {
    end "$tree$data/pid"
    as_root rm -rf "$tree$data" "$state/mysql.log" "$state/mysql-tree.log"
}

case $1 in start) answers $port || start ;; stop) stop ;; esac

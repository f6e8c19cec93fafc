#!/usr/bin/env bash
# tinyproxy, installed: each test starts one of its own. tinyproxy.sh start|stop
set -euo pipefail
. "$(dirname "$0")/shared.sh"

case $1 in start) command -v tinyproxy >/dev/null || need tinyproxy ;; stop) ;; esac

#!/usr/bin/env bash
# The identity provider oidc-provider for node, installed: each test starts one of its own. identity.sh start|stop
set -euo pipefail
. "$(dirname "$0")/shared.sh"
home="$trees/oidc-provider-9"

install_provider() {
    command -v npm >/dev/null || need nodejs npm
    rm -rf "$home.new" "$home"
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$home.new" oidc-provider@9 >/dev/null
    mv "$home.new" "$home"
}

case $1 in start) [ -d "$home" ] || install_provider ;; stop) ;; esac

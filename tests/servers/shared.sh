# Read by the scripts beside it (". shared.sh"): where things lie, who runs what, and how one waits for a port.
# Trees that were installed are kept; data are made anew with every start and go with every stop.
trees="${DECISOR_TREES:-$HOME/.cache/decisor-servers}"
state="${DECISOR_SERVERS:-/var/tmp/decisor-servers-$(id -u)}"
mkdir -p "$trees" "$state"
chmod 755 "$state"

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
as_user() { # user command...
    local user=$1
    shift
    if [ "$(id -u)" = 0 ]; then runuser -u "$user" -- "$@"; else "$@"; fi
}

need() { # packages of Debian or Ubuntu. One that is installed here must not start a server of its own.
    local policy=/usr/sbin/policy-rc.d own=""
    as_root apt-get update -qq
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod +x "$policy"
        own=yes
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    [ -z "$own" ] || as_root rm -f "$policy"
}

in_background() { # log command...: it outlives this shell, and has no input
    local log=$1
    shift
    setsid "$@" >"$log" 2>&1 </dev/null &
}

await() { # port name log
    for _ in $(seq 240); do
        answers "$1" && return
        sleep 0.25
    done
    echo "$2 does not answer on port $1:" >&2
    tail -n 5 "$3" >&2 || true
    return 1
}

end() { # the file with its number. Its data go too, so it need not close them.
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 0
    as_root kill -9 "$pid" 2>/dev/null || return 0
    while as_root kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}

#!/usr/bin/env bash
# Tests on Python 3.14, by a user without rights in a tree of Debian's unstable suite: python314.sh [ARGUMENTS OF PYTEST]
# Needs root for the tree, which is kept; its mounts end with this script. Without arguments: what differs by the version of
# Python, in a minute or two: modules and their doctests, annotations, start and end of processes, event loops.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/servers/shared.sh
tree="$trees/python314"
user=tester
few=(src tests/calls tests/cli/test_ask.py tests/cli/test_early_interrupts.py tests/decision_models/test_hostile_machine.py
    tests/functions/test_functions.py tests/history/test_history_store.py tests/replies tests/session/test_forks.py
    tests/session/test_front.py tests/session/test_names.py tests/test_calling.py tests/test_child_process.py tests/tools
    tests/traces)

make_tree() {
    command -v debootstrap >/dev/null || need debootstrap
    as_root rm -rf "$tree.new"
    as_root debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates sid "$tree.new" \
        >"$state/python314.log"
    as_root chroot "$tree.new" useradd --create-home "$user"
    as_root mv "$tree.new" "$tree"
}

[ -d "$tree" ] || make_tree
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || as_root cp -L "$file" "$tree$file"
done
home="$tree/home/$user"
as_root rm -rf "$home/decisor"
as_root mkdir "$home/decisor"
git ls-files -z | tar --null -T - -c --ignore-failed-read | as_root tar -x -C "$home/decisor"
as_root chroot "$tree" chown -R "$user" "/home/$user"
[ $# -gt 0 ] || set -- "${few[@]}" -m "not slow"

# The environment of a set-up is made anew where what it installs has changed.
inside='
    set -e
    cd ~/decisor
    sum=$(cat pyproject.toml constraints.txt tests/servers/python314.sh | sha256sum)
    if [ "$(cat ~/venv/sum 2>/dev/null)" != "$sum" ]; then
        python3 -m venv --clear ~/venv
        ~/venv/bin/python -m pip install --quiet -c constraints.txt -e ".[cluster,documents,fast,graph,keyring,lab,neo4j,office,openapi,postgres,solver]" --group dev
        echo "$sum" >~/venv/sum
    fi
    export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536
    ~/venv/bin/python --version
    exec ~/venv/bin/python -m pytest -n 2 "$@"
'
as_root unshare --mount --propagation private bash -c '
    tree=$1 user=$2 inside=$3
    shift 3
    mount -t proc proc "$tree/proc"
    mount -t sysfs sysfs "$tree/sys"
    mount --bind /dev "$tree/dev"
    mount -t devpts devpts "$tree/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
    exec chroot "$tree" runuser -l "$user" -c "$inside" -- tester "$@"
' mounts "$tree" "$user" "$inside" "$@"

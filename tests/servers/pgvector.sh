#!/usr/bin/env bash
# The extension vector for the PostgreSQL that is installed here: its package where there is one for this version, else
# compiled (seconds) from the source that a later Debian has of it. What was compiled is kept.
set -euo pipefail
. "$(dirname "$0")/shared.sh"
version=$(find /usr/lib/postgresql -name initdb 2>/dev/null | sort -V | tail -1 | cut -d/ -f5)
extensions="/usr/share/postgresql/$version/extension"
tree="$trees/pgvector-$version"
later=trixie

source_lists() { # the mirror that this system uses, with the sources of a later release
    local mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | sed -n 1p)
    mkdir -p "$1/lists/partial" "$1/cache/archives/partial"
    echo "deb-src [signed-by=$keys] $mirror $later main" >"$1/sources.list"
}

compile() {
    local work
    work=$(mktemp -d)
    source_lists "$work"
    local later_apt=(apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
    as_root apt-get update -qq
    command -v gcc >/dev/null || need gcc libc6-dev
    (
        cd "$work"
        as_root "${later_apt[@]}" update
        as_root "${later_apt[@]}" source --download-only pgvector
        apt-get -qq -o APT::Sandbox::User=root download "postgresql-server-dev-$version"
        dpkg -x postgresql-server-dev-*.deb headers # the headers alone: the package would bring a second compiler
        mkdir code "$work/tree"
        tar -xf pgvector_*.orig.tar.* -C code --strip-components=1
        gcc -O2 -ftree-vectorize -fassociative-math -fno-signed-zeros -fno-trapping-math -fno-strict-aliasing -fwrapv \
            -fexcess-precision=standard -fPIC -shared -D_GNU_SOURCE -w \
            -I "headers/usr/include/postgresql/$version/server" -o tree/vector.so code/src/*.c
        cp code/vector.control tree
        cp code/sql/vector.sql "tree/vector--$(sed -n "s/^default_version = '\(.*\)'/\1/p" code/vector.control).sql"
    )
    rm -rf "$tree"
    mv "$work/tree" "$tree"
    as_root rm -rf "$work"
}

[ -n "$version" ] && [ ! -e "$extensions/vector.control" ] || exit 0
if apt-cache show "postgresql-$version-pgvector" >/dev/null 2>&1; then
    need "postgresql-$version-pgvector"
else
    if [ ! -e "$tree/vector.so" ]; then compile; fi
    as_root install -m 644 "$tree/vector.so" "/usr/lib/postgresql/$version/lib"
    as_root install -m 644 "$tree"/vector--*.sql "$extensions"
    as_root install -m 644 "$tree/vector.control" "$extensions"
fi

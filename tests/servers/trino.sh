#!/usr/bin/env bash
# Trino on trino://tests@127.0.0.1:18080, catalogs memory and tpch: trino.sh start|stop
# Its jars come from Maven Central, once, by trino_pom.xml: 435 is the last version that runs on Java 17. Holds 1 GB.
set -euo pipefail
. "$(dirname "$0")/shared.sh"
port=18080
jars="$trees/trino-435"
home="$state/trino"

get_jars() {
    command -v mvn >/dev/null || need maven
    command -v unzip >/dev/null || need unzip
    rm -rf "$jars.new"
    mvn -B -q -f "$(dirname "$0")/trino_pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$jars.new/lib" >"$state/trino-jars.log" 2>&1
    local plugin
    for plugin in memory tpch; do
        mvn -B -q dependency:copy -Dartifact="io.trino:trino-$plugin:435:zip" -DoutputDirectory="$jars.new" \
            >>"$state/trino-jars.log" 2>&1
        unzip -q "$jars.new/trino-$plugin-435.zip" -d "$jars.new/plugin"
        rm "$jars.new/trino-$plugin-435.zip"
    done
    mv "$jars.new" "$jars"
}

start() {
    command -v javac >/dev/null || need openjdk-17-jdk-headless
    [ -d "$jars" ] || get_jars
    rm -rf "$home"
    mkdir -p "$home/etc/catalog" "$home/classes"
    ln -s "$jars/plugin" "$home/plugin"
    cat >"$home/etc/config.properties" <<END
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port=$port
discovery.uri=http://127.0.0.1:$port
query.max-memory=400MB
query.max-memory-per-node=200MB
memory.heap-headroom-per-node=100MB
END
    echo connector.name=memory >"$home/etc/catalog/memory.properties"
    echo connector.name=tpch >"$home/etc/catalog/tpch.properties"
    echo io.trino=WARN >"$home/etc/log.properties"
    unset GLIBC_TUNABLES # room that a small stack of Java does not have
    javac -cp "$jars/lib/*" -d "$home/classes" "$(dirname "$0")/Trino.java"
    cd "$home"
    in_background "$home/server.log" java -Xmx1g -XX:+UseSerialGC -cp "$home/classes:$jars/lib/*" \
        -Dconfig=etc/config.properties -Dlog.levels-file=etc/log.properties -Djdk.attach.allowAttachSelf=true \
        -Dnode.environment=tests -Dnode.id=tests -Dnode.data-dir="$home/data" -Dnode.internal-address=127.0.0.1 \
        -Dnode.bind-ip=127.0.0.1 Trino
    echo $! >"$home/pid"
    await $port Trino "$home/server.log" || {
        end "$home/pid" # a server that answers too late is not left behind
        return 1
    }
    for _ in $(seq 240); do # it answers before it is ready
        ! exec 3<>"/dev/tcp/127.0.0.1/$port" || printf 'GET /v1/info HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
        ! timeout 5 cat <&3 2>/dev/null | grep -q '"starting":false' || return 0
        sleep 0.25
    done
    return 1
}

stop() {
    end "$home/pid"
    rm -rf "$home" "$state/trino-jars.log"
}

case $1 in start) answers $port || start ;; stop) stop ;; esac

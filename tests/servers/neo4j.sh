#!/usr/bin/env bash
# Neo4j's community edition on bolt://neo4j:decisor-tests@127.0.0.1:17687: neo4j.sh start|stop
# Its jars come from Maven Central, once, by neo4j_pom.xml. Needs Java 17.
set -euo pipefail
. "$(dirname "$0")/shared.sh"
port=17687
jars="$trees/neo4j-5.26.0"
home="$state/neo4j"

get_jars() {
    command -v mvn >/dev/null || need maven
    rm -rf "$jars.new"
    mvn -B -q -f "$(dirname "$0")/neo4j_pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$jars.new" >"$state/neo4j-jars.log" 2>&1
    mv "$jars.new" "$jars"
}

start() {
    command -v java >/dev/null || need openjdk-17-jre-headless
    [ -d "$jars" ] || get_jars
    rm -rf "$home"
    mkdir -p "$home/conf"
    cat >"$home/conf/neo4j.conf" <<END
server.bolt.listen_address=127.0.0.1:$port
server.http.enabled=false
server.https.enabled=false
server.memory.heap.initial_size=256m
server.memory.heap.max_size=768m
server.memory.pagecache.size=128m
dbms.usage_report.enabled=false
db.tx_log.preallocate=false
END
    export NEO4J_HOME="$home" NEO4J_CONF="$home/conf"
    unset GLIBC_TUNABLES # room that a small stack of Java does not have
    java -cp "$jars/*" org.neo4j.cli.AdminTool dbms set-initial-password decisor-tests >"$home/password.log" 2>&1
    in_background "$home/server.log" java -Xms256m -Xmx768m -XX:+UseSerialGC -cp "$jars/*" \
        --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/java.io=ALL-UNNAMED \
        --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.util.concurrent=ALL-UNNAMED \
        org.neo4j.server.CommunityEntryPoint --home-dir="$home" --config-dir="$home/conf"
    echo $! >"$home/pid"
    await $port Neo4j "$home/server.log" || {
        end "$home/pid" # a server that answers too late is not left behind
        return 1
    }
}

stop() {
    end "$home/pid"
    rm -rf "$home" "$state/neo4j-jars.log"
}

case $1 in start) answers $port || start ;; stop) stop ;; esac

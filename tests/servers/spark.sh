#!/usr/bin/env bash
# A Spark Connect server on sc://127.0.0.1:15002: spark.sh start|stop. DECISOR_SPARK_PORT names another port.
# Its jars are those of PyPI's pyspark (450 MB, once). Needs Java 17; holds up to 3 GB while it runs.
set -euo pipefail
. "$(dirname "$0")/shared.sh"
port=${DECISOR_SPARK_PORT:-15002}
version=4.2.0
jars="$trees/spark-$version"
home="$state/spark-$port"

get_jars() {
    rm -rf "$jars.new"
    mkdir -p "$jars.new"
    python3 -m pip download --quiet --no-deps --no-cache-dir -d "$jars.new" "pyspark==$version" >"$state/spark-jars.log" 2>&1
    tar -xzf "$jars.new/pyspark-$version.tar.gz" -C "$jars.new" --strip-components=2 "pyspark-$version/deps/jars"
    rm "$jars.new/pyspark-$version.tar.gz"
    mv "$jars.new" "$jars"
}

start() {
    command -v java >/dev/null || need openjdk-17-jre-headless
    [ -d "$jars" ] || get_jars
    rm -rf "$home"
    mkdir -p "$home"
    unset GLIBC_TUNABLES # room that a small stack of Java does not have
    local opens=() package
    for package in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent \
        java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar; do
        opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
    done
    cd "$home"
    in_background "$home/server.log" env SPARK_LOCAL_IP=127.0.0.1 java -Xmx2500m -XX:+UseSerialGC "${opens[@]}" \
        -Djava.io.tmpdir="$home" -Dderby.system.home="$home" -cp "$jars/jars/*" org.apache.spark.deploy.SparkSubmit \
        --master "local[2]" --conf spark.driver.memory=2500m --conf spark.ui.enabled=false \
        --conf spark.connect.grpc.binding.address=127.0.0.1 --conf spark.connect.grpc.binding.port="$port" \
        --conf spark.sql.warehouse.dir="$home/warehouse" --conf spark.sql.shuffle.partitions=2 \
        --class org.apache.spark.sql.connect.service.SparkConnectServer spark-internal
    echo $! >"$home/pid"
    await "$port" Spark "$home/server.log" || await "$port" Spark "$home/server.log" || {
        end "$home/pid" # a server that answers too late is not left behind
        return 1
    }
}

stop() {
    end "$home/pid"
    rm -rf "$home" "$state/spark-jars.log"
}

case $1 in start) answers "$port" || start ;; stop) stop ;; esac

"""Runs ArcadeDB's server with Bolt until its input ends. Arguments: folder, HTTP port, Bolt port, databases.

The password of root comes as the first line of the input. A process of its own: nothing may fork after a JVM starts.
"""

import sys

import arcadedb_embedded


def main() -> None:
    folder, http_port, bolt_port, *databases = sys.argv[1:]
    password = sys.stdin.readline().strip()
    settings = {
        "http_port": int(http_port),
        "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "bolt_port": int(bolt_port),
    }
    server = arcadedb_embedded.server.ArcadeDBServer(folder, password, settings, jvm_kwargs={"heap_size": "512m"})
    server.start()
    for database in databases:
        server.create_database(database)
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()

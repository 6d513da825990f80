"""The demo on a real HDFS and YARN of this machine: what ``make demo-cluster`` does.

The jobs are those of the demo, submitted to YARN in cluster mode: their drivers run in containers,
the tables are in HDFS, and so is what the drivers deliver.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from airflow_provider_sparklineage.cli import demo
from airflow_provider_sparklineage.spark.submit import distribution
from tests.cluster import mini_cluster

FOLDER = Path(__file__).parents[2] / "build" / "demo-cluster"


def main() -> int:
    """Start the cluster, run the demo on it, and stop it again."""
    shutil.rmtree(FOLDER / "cluster", ignore_errors=True)
    print("Starting HDFS and YARN … ", end="", flush=True)
    with mini_cluster.running(FOLDER / "cluster", yarn=True) as cluster:
        print("up.")
        return demo.run(place(cluster))


def place(cluster: mini_cluster.MiniCluster) -> demo.Place:
    """Say to the demo where it runs: what a user would configure, and how small all is."""
    host, port = cluster.webhdfs.split(":")
    location = f"webhdfs_default@{cluster.hdfs.removeprefix('hdfs://')}/lineage"
    connections = {
        "SPARK": {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}},
        "WEBHDFS": {"conn_type": "webhdfs", "host": host, "port": int(port)},
    }
    environment = {
        "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": f"hdfs://{location}",
        "HADOOP_CONF_DIR": str(cluster.conf),
    }
    for name, connection in connections.items():
        environment[f"AIRFLOW_CONN_{name}_DEFAULT"] = json.dumps(connection)
    spark = Path(str(distribution.find("spark-submit", {}).home))
    return demo.Place(
        FOLDER,
        lake=f"{cluster.hdfs}/nyc",
        environment=environment,
        conf=cluster.spark_conf(spark),
        arguments={"durable": False},
        delivered=f"{cluster.hdfs}/lineage",
        until=", gone with the cluster",
        next_step="docs/cluster.md has the ten lines for your own cluster.",
    )


if __name__ == "__main__":
    sys.exit(main())

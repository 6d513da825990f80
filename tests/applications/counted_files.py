"""Files of Parquet and ORC whose rows the observer counts; of each format one file is damaged."""

from __future__ import annotations

import json
import sys
from pathlib import Path

PARTITIONS = 7


def main(lake: Path) -> None:
    """Write the files, count them before and after the damage, and note what was counted."""
    from pyspark.sql import SparkSession
    from sparklineage_observer import jvm, records
    from sparklineage_observer.footers import Footers, ListedFile

    spark = SparkSession.builder.getOrCreate()
    classes, conf = jvm.Classes(spark._jvm), spark._jsc.hadoopConfiguration()

    def counted(folder: Path, limits: str = "") -> dict[str, int | None]:
        files = []
        for partition in sorted(folder.glob("part=*")):
            path = classes.path(str(partition))
            listed = path.getFileSystem(conf).listStatus(path)
            names = [one for one, *_ in jvm.statuses(classes, listed)]
            files += [ListedFile(name, listed, at) for at, name in enumerate(names)]
        rows = Footers(classes, conf).rows(files, records.Budget(records.Limits(limits)))
        return {
            file.path.removeprefix("file:"): count for file, count in zip(files, rows, strict=True)
        }

    found = {}
    for kind in ("parquet", "orc"):
        folder = lake / kind
        rows = spark.range(1000).selectExpr("id", f"id % {PARTITIONS} as part").repartition(3)
        rows.write.option("parquet.block.size", 1024).partitionBy("part").format(kind).save(
            str(folder)
        )
        whole = counted(folder)
        true = {path: spark.read.format(kind).load(path).count() for path in whole}
        damaged = Path(sorted(whole)[4])
        damaged.with_name(f".{damaged.name}.crc").unlink()
        damaged.write_bytes(damaged.read_bytes()[:-4] + b"PARE")  # as if it were encrypted
        found[kind] = {
            "whole": whole,
            "true": true,
            "damaged": str(damaged),
            "left": counted(folder),
            "over": counted(folder, "footers=3"),
            "late": counted(folder, "footer_seconds=0"),
        }
    (lake.parent / "counted.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Models of Spark's ML library; most are written as Spark 4 writes them, which takes less time."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from tests.truth.job import SECOND, THIRD, Job

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

    from tests.truth.job import Lake


class _Model(Job):
    """Saves models. No format of tables matters, so only one is tried."""

    formats = ("parquet",)

    def save(self, lake: Lake, folder: str, *, data: bool = True) -> None:
        """Write a model as Spark 4 does: a text of one row, and the data."""
        metadata = lake.spark.sql("""SELECT '{"class": "a.Model"}' AS _1""")
        metadata.coalesce(1).write.text(lake.path(f"{folder}/metadata"))
        if data:
            rows = lake.spark.sql("SELECT array('a', 'b') AS labels")
            rows.coalesce(1).write.parquet(lake.path(f"{folder}/data"))

    def load(self, lake: Lake, folder: str) -> None:
        """Read a model as Spark does."""
        lake.spark.read.text(lake.path(f"{folder}/metadata")).first()
        lake.spark.read.parquet(lake.path(f"{folder}/data")).first()

    def stages(self, folder: str) -> list[str]:
        """Name the folders of two stages, of which a part is new each time."""
        names = ("StringIndexer", "LogisticRegression")
        return [
            f"{folder}/stages/{number}_{name}_{uuid.uuid4().hex[-12:]}"
            for number, name in enumerate(names)
        ]


class SavesAPipeline(_Model):
    """A pipeline with two stages is saved in the folder of a day."""

    writes = {"models/churn": [SECOND]}
    declared = {"column_lineage_missing models/churn": "a model has no columns"}

    def plant(self, lake: Lake) -> None:
        pass

    def run(self, lake: Lake) -> None:
        folder = "models/churn/dt=2024-05-06"
        self.save(lake, folder, data=False)
        for stage in self.stages(folder):
            self.save(lake, stage)


class SavesOneModel(_Model):
    """A model that is no pipeline, and one without data, are saved."""

    writes = {"models/one": "all", "models/two": "all"}
    declared = {f"column_lineage_missing {name}": "a model has no columns" for name in writes}

    def plant(self, lake: Lake) -> None:
        pass

    def run(self, lake: Lake) -> None:
        self.save(lake, "models/one")
        self.save(lake, "models/two", data=False)


class LoadsAPipeline(_Model):
    """A pipeline is loaded, and a table is written."""

    reads = {"models/churn": "all", "events": "all"}
    writes = {"out": "all"}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        self.save(lake, "models/churn", data=False)
        for stage in self.stages("models/churn"):
            self.save(lake, stage)

    def run(self, lake: Lake) -> None:
        lake.spark.read.text(lake.path("models/churn/metadata")).first()
        stages = lake.root.joinpath(lake.job, "models/churn/stages")
        for stage in sorted(stages.iterdir()):
            self.load(lake, f"models/churn/stages/{stage.name}")
        lake.write(lake.read("events"), "out")


class SavesTwiceTheSamePipeline(_Model):
    """The second overwrites the first, whose stages are gone."""

    writes = {"models/churn": "all"}
    declared = {"column_lineage_missing models/churn": "a model has no columns"}

    def plant(self, lake: Lake) -> None:
        pass

    def run(self, lake: Lake) -> None:
        import shutil

        for _ in range(2):
            shutil.rmtree(lake.path("models/churn"), ignore_errors=True)
            self.save(lake, "models/churn", data=False)
            for stage in self.stages("models/churn"):
                self.save(lake, stage)


class TextsNamedMetadata(_Model):
    """Folders of these names that are no model stay datasets of their own."""

    reads = {"events": "all"}
    writes = {"archive/metadata": "all", "archive/data": "all"}

    def run(self, lake: Lake) -> None:
        events = lake.read("events")
        events.coalesce(1).write.parquet(lake.path("archive/data"))
        users = events.selectExpr("CAST(user AS string) AS user")
        users.coalesce(1).write.text(lake.path("archive/metadata"))


class _Fitted(Job):
    """A pipeline is fitted by Spark's library itself, in the JVM: that of Python needs NumPy."""

    formats = ("parquet",)

    def pipeline(self, lake: Lake) -> JavaObject:
        """Fit a pipeline of one stage to a day."""
        jvm = lake.spark._jvm
        assert jvm is not None
        ml = jvm.org.apache.spark.ml
        indexer = ml.feature.StringIndexer("index").setInputCol("name").setOutputCol("index")
        stages = lake.spark.sparkContext._gateway.new_array(ml.PipelineStage, 1)
        stages[0] = indexer
        day = lake.read("events").where("dt = '2024-05-06'")
        frame = day.selectExpr("CAST(user AS string) AS name")
        return ml.Pipeline("pipeline").setStages(stages).fit(frame._jdf)


class SavesAFittedPipeline(_Fitted):
    """The pipeline is saved in the folder of a day; Spark 3 writes some of its texts by RDDs."""

    reads = {"events": [SECOND]}
    writes = {"models/churn": [SECOND]}
    declared = {"column_lineage_missing models/churn": "a model has no columns"}

    def run(self, lake: Lake) -> None:
        folder = lake.path("models/churn/dt=2024-05-06")
        self.pipeline(lake).write().overwrite().save(folder)

    def truth_on(self, spark: tuple[int, int]) -> Job:
        return self if spark >= (4, 0) else _SavesByRdd()


class _SavesByRdd(SavesAFittedPipeline):
    declared = {
        **SavesAFittedPipeline.declared,
        "partitions_inexact models/churn": "only the listener sees what RDDs of the JVM write",
    }


class LoadsAFittedPipeline(_Fitted):
    """The pipeline is loaded and applied to a day, which is written."""

    reads = {"models/churn": "all", "events": [THIRD]}
    writes = {"out": "all"}
    columns = {"out": {"id": {"events.id"}, "index": {"events.user"}}}

    def plant(self, lake: Lake) -> None:
        super().plant(lake)
        self.pipeline(lake).write().overwrite().save(lake.path("models/churn"))

    def run(self, lake: Lake) -> None:
        from pyspark.sql import DataFrame

        jvm = lake.spark._jvm
        assert jvm is not None
        model = jvm.org.apache.spark.ml.PipelineModel.load(lake.path("models/churn"))
        for stage in model.stages():
            stage.setHandleInvalid("keep")
        day = lake.read("events").where("dt = '2024-05-07'")
        frame = day.selectExpr("id", "CAST(user AS string) AS name")
        applied = DataFrame(model.transform(frame._jdf), lake.spark)
        lake.write(applied.select("id", "index"), "out")

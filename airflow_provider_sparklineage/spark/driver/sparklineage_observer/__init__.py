"""Records which partitions each query of this PySpark driver read and wrote.

For each finished query, one line of JSON is appended to the file that the property
``spark.sparklineage.observations`` names. Every error of the observer becomes one line
``{"error": ...}``; the job does not notice the error. If the property
``spark.sparklineage.deliver`` has a URL, this file and the listener's file are delivered to that
URL.

==================  ================================================================================
:mod:`.attaching`   registers a listener with each SparkSession, waits at exit for the last queries;
                    makes all changes to PySpark, py4j and Log4j
:mod:`.in_process`  starts and stops the observer in a process that runs several applications
:mod:`.observer`    makes one record of each query, within the limits
:mod:`.plans`       finds the scans, write commands and Python UDFs of a physical plan
:mod:`.scans`       finds the partitions that a scan selected, and the columns of its relation
:mod:`.relations`   finds the paths and tables that a leaf of a logical plan reads, and the tables
                    of a query that is answered from statistics
:mod:`.streams`     records the batches of streams, and the partitions that they wrote into files
:mod:`.saves`       records the folders that RDD code writes by Hadoop's output formats
:mod:`.file_writes` finds the partitions that a write command wrote, by listing and checking
:mod:`.iceberg`     finds the partitions that this application's snapshots wrote and removed
:mod:`.delta`       finds the partitions that this application's commits wrote and removed
:mod:`.commands`    describes the target of a write command and, where it is needed, the plan
:mod:`.frames`      keeps the plans of checkpoints and of the batches of streams
:mod:`.procedures`  describes calls of Iceberg's procedures
:mod:`.records`     has the shapes of records, writes the file, and has the limits
:mod:`.jvm`         makes calls that are short in Scala and long in py4j
:mod:`.delivery`    in a cluster, delivers the file and the listener's events to a folder that the
                    worker reads, and writes lines about failures into the driver's log
==================  ================================================================================
"""


def install():
    """Attach the observer to each SparkSession of this process as soon as the session is made."""
    from sparklineage_observer import attaching

    attaching.install()

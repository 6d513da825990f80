"""Records which partitions each query of this PySpark driver read and wrote.

One line of JSON per finished query is appended to the file that ``spark.sparklineage.observations``
names. Every error in here becomes one line ``{"error": ...}``; the job sees none of it.
With ``spark.sparklineage.deliver``, a URL, this file and the listener's are delivered there.

==================  ================================================================================
:mod:`.attaching`   from interpreter start to a listener on each SparkSession, and to the drain at
                    exit; its changes to PySpark, py4j and Log4j
:mod:`.in_process`  the same in a process that runs several applications, one after the other
:mod:`.observer`    one query to one record, within the budget
:mod:`.plans`       a physical plan to its scans, write commands and Python UDFs
:mod:`.scans`       a scan to the partitions that it selected, and the columns of its relation
:mod:`.relations`   a leaf of a logical plan to the paths and tables that it reads; a query that is
                    answered from statistics to its leaves
:mod:`.streams`     the batches of streams, and the partitions that they wrote into files
:mod:`.file_writes` a write command to the partitions that it wrote, by listing and checking
:mod:`.iceberg`     snapshots of this application to written and removed partitions
:mod:`.delta`       tagged commits to written and removed partitions
:mod:`.commands`    a write command to its target and, where it is needed, its plan
:mod:`.records`     the output file and the limits
:mod:`.jvm`         calls that are short in Scala and long in py4j
:mod:`.delivery`    in a cluster, the delivery of all this and of the listener's events to a folder
                    that the worker reads; the lines in the driver's log about failed deliveries
==================  ================================================================================
"""


def install():
    """Attach the observer to each SparkSession of this process, once the session is made."""
    from sparklineage_observer import attaching

    attaching.install()

"""Records which partitions each query of this PySpark driver read and wrote.

One line of JSON per finished query is appended to the file that ``spark.sparklineage.observations``
names. Every error in here becomes one line ``{"error": ...}``; the job sees none of it.
With ``spark.sparklineage.deliver``, a URL, this file and the listener's are delivered there.

==================  ================================================================================
:mod:`.attaching`   from interpreter start to a listener on each SparkSession, and to the drain at
                    exit; :mod:`.callbacks` is what Java calls the listener by,
                    :mod:`.replacing` what stands in PySpark for that
:mod:`.in_process`  the same in a process that runs several applications, one after the other
:mod:`.observer`    one query to one record, within the budget
:mod:`.plans`       a physical plan to its scans, write commands and Python UDFs
:mod:`.scans`       a scan to the partitions that it selected
:mod:`.schemas`     the columns of what is read, once
:mod:`.statistics`  what a query without a scan is about
:mod:`.streams`     the batches of streams; :mod:`.sink_log` what they wrote into files
:mod:`.relations`   a leaf of a logical plan to the paths and tables that it reads
:mod:`.file_writes` a write command to the partitions that it wrote, by listing and checking
:mod:`.listing`     the files in the folders of a table, by few calls
:mod:`.iceberg`     snapshots of this application to written and removed partitions
:mod:`.commands`    a write command to its target and, where it is needed, its plan
:mod:`.delta`       tagged commits to written and removed partitions
:mod:`.records`     the output file and the limits
:mod:`.jvm`         what is short in Scala and long in py4j
:mod:`.delivery`    in a cluster, all this and the listener's events to where the worker finds it:
                    :mod:`.segments` of the files, into a :mod:`.remote_folder`;
                    :mod:`.driver_log` has what goes wrong
==================  ================================================================================
"""

VERSION = 1
"""Of the record format: ``schemas/observation.json``."""


def install():
    """Have each SparkSession of this process observed, once it is made."""
    from sparklineage_observer import attaching

    attaching.install()

"""One try of a task, from the rendering of its fields to the event that leaves.

:mod:`.task_try`       the object that an operator has of its try, and that hooks and links ask
:mod:`.rendering`      fields: declarations before they are rendered, secrets and traces after it
:mod:`.prepare`        Airflow's answers, the declared datasets, the event of START
:mod:`.other_runs`     earlier runs of the task, and the tasks before it, as Airflow knows them
:mod:`.capture`        the bundle of the try and its manifest
:mod:`.submit`         a submission: the listener is put into its arguments
:mod:`.task_driver`    PySpark in the task's own process: the listener is put into its JVM
:mod:`.remote_driver`  a driver in a cluster: deliveries, or events that are sent to the worker
:mod:`.collect`        the reports of the driver are merged into the event
:mod:`.publish`        the event leaves
:mod:`.timing`         the time that all this may take, and takes
"""

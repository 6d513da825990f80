"""One try of a task, in four stages; the outcome of a stage is an argument of the next one.

:mod:`.prepare`        Airflow is asked, the fields are traced, and START's event is made
:mod:`.submit`         a bundle is made, and the listener goes into a submission's arguments, as
                       :mod:`airflow_provider_sparklineage.spark.submit.additions` decides
:mod:`.collect`        the reports of the driver are merged into the lineage of the try
:mod:`.publish`        the event is made of it, and goes to XCom, archive and backend

:mod:`.task_try`       the object with the outcome of each stage, which hooks and links ask
:mod:`.other_runs`     earlier runs of the task, and the tasks before it, as Airflow knows them
:mod:`.task_driver`    PySpark in the task's own process: the listener is put into its JVM
:mod:`.timing`         the time limits of the stages, and the time that they took
"""

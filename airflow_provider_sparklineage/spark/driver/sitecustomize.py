"""Installs the observer in a PySpark driver; in other processes with our zip, does nothing."""


def _run_shadowed():
    """Run the ``sitecustomize`` that this file hides; do nothing if it hides none.

    Without our zip on its path, Python would have run that ``sitecustomize``.
    """
    import os
    import sys
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    ours = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != ours]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    mine = sys.modules.get("sitecustomize")
    sys.modules["sitecustomize"] = module  # from now on the name is that of the hidden module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if mine is not None:
            sys.modules["sitecustomize"] = mine
        raise  # Python's site reports the error, exactly as it would have without us


def _observe():
    import os

    # spark-submit gives this to the driver's Python only, not to the Python workers.
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return
    try:
        from sparklineage_observer import install

        install()
    except Exception:  # the job must never notice
        return


try:
    _observe()
finally:
    _run_shadowed()

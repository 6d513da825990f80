"""Steps of an event, one a module; :mod:`..pipeline` lists them in their order."""

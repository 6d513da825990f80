"""Steps of an event: texts, names, size; :mod:`..pipeline` lists them in their order."""

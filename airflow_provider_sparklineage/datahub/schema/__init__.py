"""Schemas of datasets: fields with the paths and types that DataHub's own connectors give them.

=====================  =============================================================================
:mod:`.schemas`        the aspect ``schemaMetadata`` of what was read and written
:mod:`.schema_fields`  the fields of a dataset, for that aspect and for lineage
:mod:`.field_paths`    what a field is called
:mod:`.column_types`   types as trees, read from text or from nested fields
:mod:`.data_types`     types as DataHub has them
=====================  =============================================================================
"""

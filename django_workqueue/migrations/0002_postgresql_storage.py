"""
Storage settings of the hot tables on PostgreSQL; nothing elsewhere.

Live tables turn over whole many times an hour. Autovacuum's default, a fifth of the table, would let them fill with
dead rows after a burst; a fixed threshold vacuums by the work done. Truncation takes an exclusive lock that stops every
claim, for space that the next burst needs again. Free room on the pages of leases keeps their renewals HOT.
"""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

STORAGE = {
    "django_workqueue_job": {
        "autovacuum_vacuum_scale_factor": "0",
        "autovacuum_vacuum_threshold": "20000",
        "vacuum_truncate": "off",
    },
    "django_workqueue_lease": {
        "autovacuum_vacuum_scale_factor": "0",
        "autovacuum_vacuum_threshold": "1000",
        "vacuum_truncate": "off",
        "fillfactor": "50",
    },
}


def set_storage(_apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for table, parameters in STORAGE.items():
            pairs = ", ".join(f"{name} = {value}" for name, value in parameters.items())
            schema_editor.execute(f"ALTER TABLE {schema_editor.quote_name(table)} SET ({pairs})")


def reset_storage(_apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for table, parameters in STORAGE.items():
            schema_editor.execute(f"ALTER TABLE {schema_editor.quote_name(table)} RESET ({', '.join(parameters)})")


class Migration(migrations.Migration):
    dependencies = [("django_workqueue", "0001_initial")]
    operations = [migrations.RunPython(set_storage, reset_storage)]

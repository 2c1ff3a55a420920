"""What a job carries wherever it is: live, finished or dead."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from ..domain import encoding
from ..domain.masking import Veil

NAME_LENGTH = 100
KEY_LENGTH = 200
TASK_LENGTH = 300
WORKER_LENGTH = 200
BY_LENGTH = 150
"""Of the name of whoever did something."""


class Literal(models.Value):
    """
    A word written into the SQL text instead of bound as a parameter.

    A partial index is used only where the planner can prove its condition, and it proves nothing about a
    parameter whose value it does not know.
    """

    def as_sql(self, *_args: Any, **_kwargs: Any) -> tuple[str, tuple[str | int, ...]]:
        """Return the quoted word. Only for our own state names, never for data."""
        word = str(self.value)
        if not word.isidentifier():
            raise ValueError(f"{word!r} is not a word to be written into SQL.")
        return f"'{word}'", ()


class JobColumns(models.Model):
    """
    The columns that travel with a job, copied as they are when it moves between tables.

    ``args``, ``kwargs`` and ``metadata`` are JSON text, exactly as encoded at enqueue: a database's JSON type may
    change a value on the way, and a row that cannot be decoded must still be readable in the admin.
    """

    id = models.UUIDField(_("id"), primary_key=True)
    queue = models.CharField(_("queue"), max_length=NAME_LENGTH)
    tenant = models.CharField(_("tenant"), max_length=NAME_LENGTH, blank=True, default="")
    task = models.CharField(_("task"), max_length=TASK_LENGTH)
    args = models.TextField(_("arguments"), default="[]")
    kwargs = models.TextField(_("keyword arguments"), default="{}")
    priority = models.SmallIntegerField(_("priority"), default=0)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    max_attempts = models.PositiveSmallIntegerField(_("attempts allowed"), default=5)
    interruptions = models.PositiveSmallIntegerField(_("interruptions"), default=0)
    dedupe_key = models.CharField(_("dedupe key"), max_length=KEY_LENGTH, null=True, blank=True)  # noqa: DJ001 - NULL is "no key": the unique index leaves it out
    dedupe_until_start = models.BooleanField(_("key is free while leased"), default=False)
    dedupe_expires_at = models.DateTimeField(_("dedupe key is free from"), null=True, blank=True)
    concurrency_key = models.CharField(_("concurrency key"), max_length=KEY_LENGTH, null=True, blank=True)  # noqa: DJ001 - NULL is "no key": the indexes leave it out
    concurrency_limit = models.PositiveSmallIntegerField(_("jobs of the key at once"), null=True, blank=True)
    workflow = models.UUIDField(_("workflow"), null=True, blank=True)
    """The workflow that the job is a member of; its member row has the job's id."""
    enqueued_at = models.DateTimeField(_("enqueued"), db_default=Now())
    metadata = models.TextField(_("metadata"), default="{}")
    last_error = models.TextField(_("last error"), blank=True, default="")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.task} {self.pk}"

    @property
    def decoded_args(self) -> list[Any]:
        """The positional arguments. Raises ValueError when the stored text is not a JSON list."""
        value: list[Any] = encoding.decode(self.args, list)
        return value

    @property
    def decoded_kwargs(self) -> dict[str, Any]:
        """The keyword arguments. Raises ValueError when the stored text is not a JSON object."""
        value: dict[str, Any] = encoding.decode(self.kwargs, dict)
        return value

    @property
    def decoded_metadata(self) -> dict[str, Any]:
        """The metadata. Raises ValueError when the stored text is not a JSON object."""
        value: dict[str, Any] = encoding.decode(self.metadata, dict)
        return value

    @property
    def veiled_error(self) -> str:
        """The last error without the values that WORKQUEUE["MASK"] hides."""
        return Veil.of(self).text(self.last_error)


COPIED = tuple(field.attname for field in JobColumns._meta.local_fields)
"""Names of the columns that a job takes along when it moves to another table."""

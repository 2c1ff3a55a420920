"""The screen of queues: how each stands and went; pausing and resuming them, moving and cancelling their jobs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..domain.states import PauseKind
from ..exceptions import WorkQueueError
from ..lifecycle import operate
from ..lifecycle.keyset import Keyset
from ..models import Pause
from ..store import store_for
from .changelist import BoundedChangeList
from .queue_columns import QueueChangeList, QueueColumnsMixin
from .queue_operations import PAUSE, QueueOperatingMixin
from .words import name_of


class QueueAdminMixin(QueueColumnsMixin, QueueOperatingMixin):
    """Queues by name. Pausing one loses nothing and can be taken back, so it asks for no confirmation in the list."""

    actions = ("pause", "resume")
    keyset = Keyset(("name",))
    list_display = (
        "name", "standing", "oldest", "ready", "scheduled", "withheld", "held", "dead_letters", "workers",
        "pace", "failed_lately", "waited", "ran", "limits",
    )  # fmt: skip
    search_fields = ("name",)
    change_list_template = "admin/django_workqueue/queue/change_list.html"
    empty_text = gettext_lazy("No queue has been used. The first job enqueued into one puts it here.")
    fieldsets = (
        (None, {"fields": ("name", "standing", "workers", "limits")}),
        (
            gettext_lazy("Now"),
            {"fields": ("oldest", "ready", "scheduled", "blocked", "parked", "held", "dead_letters")},
        ),
        (gettext_lazy("The last hour"), {"fields": ("pace", "failed_lately", "waited", "ran", "statistics")}),
        (
            gettext_lazy("Since it was first used"),
            {"fields": ("done", "failed", "dead", "cancelled", "reaped", "duplicates")},
        ),
    )

    is_shared = True
    totals = frozenset({
        "oldest", "ready", "scheduled", "blocked", "parked", "withheld", "held", "dead_letters", "pace",
        "failed_lately", "waited", "ran", "statistics", "done", "failed", "dead", "cancelled", "reaped", "duplicates",
    })  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Return every name of the layout."""
        return flatten_fieldsets(self.get_fieldsets(request, obj))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BoundedChangeList]:
        """Return the list that reads a board for each row."""
        return QueueChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the queue with its board, or None."""
        queue = super().get_object(request, object_id, from_field)
        if queue is not None:
            self.add_boards(request, [queue])
        return queue

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the queues, each with its pause: ``paused_at`` and ``paused_by``, None where it has none."""
        pauses = Pause.objects.filter(kind=PauseKind.QUEUE, name=OuterRef("name"))
        found = {name: Subquery(pauses.values(name)[:1]) for name in ("paused_at", "paused_by")}
        rows: QuerySet[Any] = super().get_queryset(request).annotate(**found)
        return rows

    @admin.action(permissions=["pause"], description=gettext_lazy("Pause selected %(verbose_name_plural)s"))
    def pause(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Stop workers from claiming from the selected queues."""
        by = name_of(request.user)
        count = self._each(
            request,
            queryset.filter(paused_at__isnull=True),
            lambda name: operate.pause(name, by=by, database=self.database),
            _("Paused."),
        )
        told = ngettext("%(count)d queue was paused.", "%(count)d queues were paused.", count)
        self.message_user(request, told % {"count": count})

    @admin.action(permissions=["pause"], description=gettext_lazy("Resume selected %(verbose_name_plural)s"))
    def resume(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Let workers claim from the selected queues again."""
        count = self._each(
            request,
            queryset.filter(paused_at__isnull=False),
            lambda name: operate.resume(name, database=self.database),
            _("Resumed."),
        )
        told = ngettext("%(count)d queue was resumed.", "%(count)d queues were resumed.", count)
        self.message_user(request, told % {"count": count})

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the user may pause and resume."""
        return self._may(request, PAUSE)

    def _each(self, request: HttpRequest, queues: QuerySet[Any], act: Callable[[str], object], log_text: str) -> int:
        """Change and log each of ``queues``, and return how many they were."""
        count = 0
        for queue in chain.from_iterable(self.keyset.batches(queues, 100)):
            try:
                with store_for(self.database).transaction():
                    act(queue.pk)
                    self.log_change(request, queue, log_text)
            except WorkQueueError as error:
                self.message_user(request, str(error), messages.WARNING)
                continue
            count += 1
        return count

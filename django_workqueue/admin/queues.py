"""The screen of queues: which are paused, and what they have done so far; pausing and resuming them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..domain.states import PauseKind
from ..lifecycle import operate
from ..lifecycle.keyset import Keyset
from ..models import Pause, Queue
from ..store import store_for
from .base import ReadOnlyMixin
from .figures import FiguresMixin
from .words import when


class QueueAdminMixin(FiguresMixin, ReadOnlyMixin):
    """Queues by name. Pausing one loses nothing and can be taken back, so it asks for no confirmation."""

    actions = ("pause", "resume")
    keyset = Keyset(("name",))
    list_display = (
        "name",
        "standing",
        "paused",
        "live_jobs",
        "done",
        "failed",
        "dead",
        "cancelled",
        "reaped",
        "duplicates",
    )
    search_fields = ("name",)
    change_list_template = "admin/django_workqueue/queue/change_list.html"
    empty_text = gettext_lazy("No queue has been used. The first job enqueued into one puts it here.")
    fields = readonly_fields = (
        "name", "standing", "paused", "live_jobs", "done", "failed", "dead", "cancelled", "reaped", "duplicates",
    )  # fmt: skip

    paused = when("paused_at", gettext_lazy("paused"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the queues, each with its pause: ``paused_at`` and ``paused_by``, None where it has none."""
        pauses = Pause.objects.filter(kind=PauseKind.QUEUE, name=OuterRef("name"))
        found = {name: Subquery(pauses.values(name)[:1]) for name in ("paused_at", "paused_by")}
        rows: QuerySet[Any] = super().get_queryset(request).annotate(**found)
        return rows

    @admin.action(permissions=["pause"], description=gettext_lazy("Pause selected %(verbose_name_plural)s"))
    def pause(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Stop workers from claiming from the selected queues."""
        by = request.user.get_username()
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
        return request.user.has_perm(f"{self.opts.app_label}.pause_{self.opts.model_name}")

    def _each(self, request: HttpRequest, queues: QuerySet[Any], act: Callable[[str], object], log_text: str) -> int:
        """Change and log each of ``queues``, and return how many they were."""
        count = 0
        for queue in chain.from_iterable(self.keyset.batches(queues, 100)):
            with store_for(self.database).transaction():
                act(queue.pk)
                self.log_change(request, queue, log_text)
            count += 1
        return count

    @admin.display(description=gettext_lazy("state"))
    def standing(self, row: Any) -> str:
        """Show whether workers may claim from the queue, and who says that they may not."""
        return _("Paused by %(name)s") % {"name": row.paused_by or "?"} if row.paused_at else _("Open")

    @admin.display(description=gettext_lazy("live jobs"))
    def live_jobs(self, row: Queue) -> str:
        """Show a link to the jobs that wait or run in the queue."""
        url = reverse("admin:django_workqueue_job_changelist", current_app=self.admin_site.name)
        return format_html('<a href="{}?{}">{}</a>', url, urlencode({"queue": row.pk}), _("show its jobs"))

"""The screen of workflows: how far each is, its members as a tree, and cancelling it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..domain.masking import mask_json
from ..domain.scope import Scope
from ..domain.states import MemberKind, MemberState, WorkflowState
from ..lifecycle import workflow as flowing
from ..lifecycle.keyset import Keyset
from ..models import Workflow, WorkflowMember
from ..store import store_for
from .base import ReadOnlyMixin
from .filters import WordFilter
from .scope import scope_of
from .words import coloured, line, preformatted, pretty, text_of, when

SHOWN = 500
"""Members on one page."""


class WorkflowStateFilter(WordFilter):
    """Filters workflows by state."""

    title = gettext_lazy("state")
    parameter_name = "state"
    words = WorkflowState


@dataclass(slots=True)
class Branch:
    """A member, and the members inside it."""

    member: WorkflowMember
    held: bool
    """Whether its turn does not come, as another member is lost."""
    parts: list[Branch] = field(default_factory=list)

    @property
    def is_task(self) -> bool:
        """Whether the member is a task, whose job has a page."""
        return self.member.kind == MemberKind.TASK

    @property
    def state(self) -> str:
        """How far the member is."""
        return _("Held back") if self.held else self.member.get_state_display()


def tree_of(workflow: Workflow, database: str) -> tuple[list[Branch], bool]:
    """Read the first members of a workflow by one statement, as a tree; and whether there are more."""
    rows = WorkflowMember.objects.using(database).filter(workflow=workflow.pk).order_by("position")
    members = list(rows.defer("plan", "result")[: SHOWN + 1])
    is_held = workflow.state == WorkflowState.FAILED
    branches: dict[int | None, Branch] = {}
    roots: list[Branch] = []
    for member in members[:SHOWN]:
        branch = Branch(member, is_held and member.state == MemberState.WAITING)
        branches[member.position] = branch
        parent = branches.get(member.parent)
        (roots if parent is None else parent.parts).append(branch)
    return roots, len(members) > SHOWN


class WorkflowAdminMixin(ReadOnlyMixin):
    """Workflows, newest first. Cancelling cannot be taken back, so it asks first."""

    actions = ("cancel",)
    refreshes = True
    # Ids ascend with time, so the primary key is the order of arrival.
    keyset = Keyset(("-id",))
    windowed = True
    list_display = ("title", "standing", "steps", "problem_line", "tenant", "enqueued")
    list_filter = (WorkflowStateFilter,)
    empty_text = gettext_lazy("No workflow is kept. Enqueueing a chain, a group or a chord puts one here.")
    fieldsets = (
        (None, {"fields": ("standing", "steps", "enqueued", "ended", "kept")}),
        (gettext_lazy("Failure"), {"fields": ("shown_culprit", "shown_problem", "callback")}),
        (gettext_lazy("What"), {"fields": ("title", "id", "tenant", "shown_result")}),
    )

    enqueued = when("enqueued_at", gettext_lazy("enqueued"))
    ended = when("ended_at", gettext_lazy("ended"))
    kept = when("expires_at", gettext_lazy("kept until"))
    shown_problem = text_of("problem", gettext_lazy("problem"))

    def within(self, scope: Scope, rows: QuerySet[Workflow]) -> QuerySet[Workflow]:
        """Return those of which every job is of the scope's tenants."""
        return flowing.within(scope, rows)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Return every name of the layout."""
        return flatten_fieldsets(self.get_fieldsets(request, obj))

    @admin.display(description=gettext_lazy("state"))
    def standing(self, row: Workflow) -> str:
        """Show how far it is, in words and by a colour."""
        kinds = {WorkflowState.SUCCEEDED: "good", WorkflowState.FAILED: "bad"}
        return coloured(kinds.get(WorkflowState(row.state), "idle"), row.get_state_display())

    @admin.display(description=gettext_lazy("tasks done"))
    def steps(self, row: Workflow) -> str:
        """Show how many tasks have succeeded, of how many."""
        return _("%(done)d of %(size)d") % {"done": row.done, "size": row.size}

    @admin.display(description=gettext_lazy("problem"))
    def problem_line(self, row: Workflow) -> str:
        """Show the beginning of why it failed."""
        return line(row.problem)

    @admin.display(description=gettext_lazy("result"))
    def shown_result(self, row: Workflow) -> str:
        """Show the result of the whole over several lines."""
        return preformatted(pretty(mask_json(row.result))) if row.result else "-"

    @admin.display(description=gettext_lazy("culprit"))
    def shown_culprit(self, row: Workflow) -> str:
        """Show the job that made it fail, as a link to where that is now."""
        return self._link(row.culprit)

    @admin.display(description=gettext_lazy("error callback"))
    def callback(self, row: Workflow) -> str:
        """Show the job of the error callback, as a link."""
        return self._link(row.on_error_job)

    def _link(self, job_id: Any) -> str:
        if job_id is None:
            return "-"
        # The page of live jobs leads on to where the job is by now.
        url = reverse("admin:django_workqueue_job_change", args=(job_id,), current_app=self.admin_site.name)
        return format_html('<a href="{}">{}</a>', url, job_id)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Add the members."""
        tree, is_cut = tree_of(obj, self.database)
        return super().page_context(request, obj) | {"tree": tree, "tree_is_cut": is_cut, "subtitle": str(obj)}

    # -- cancelling ----------------------------------------------------------------------------------------------

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Whether the user may cancel workflows."""
        return request.user.has_perm(f"{self.opts.app_label}.cancel_{self.opts.model_name}")

    @admin.action(permissions=["cancel"], description=gettext_lazy("Cancel selected %(verbose_name_plural)s…"))
    def cancel(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> HttpResponse | None:
        """Ask, then cancel the selected workflows."""
        if "confirmed" not in request.POST:
            return self._ask(request, queryset)
        count = 0
        for row in chain.from_iterable(self.keyset.batches(queryset, 100)):
            with store_for(self.database).transaction():
                if flowing.cancel(row.pk, tenant=scope_of(request).tenants, database=self.database):
                    self.log_change(request, row, _("Cancelled."))
                    count += 1
        told = ngettext("%(count)d workflow was cancelled.", "%(count)d workflows were cancelled.", count)
        self.message_user(request, told % {"count": count})
        return None

    def _ask(self, request: HttpRequest, rows: QuerySet[Workflow]) -> HttpResponse:
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": _("Cancel workflows"),
            "opts": self.opts,
            "sample": rows[:20],
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across") == "1",
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "back": reverse("admin:django_workqueue_workflow_changelist", current_app=self.admin_site.name),
        }
        return TemplateResponse(request, "admin/django_workqueue/workflow/cancel.html", context)

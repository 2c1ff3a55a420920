"""The screen of pauses: what is paused, since when and by whom; ending a pause, and adding one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..domain.scope import Scope
from ..domain.states import PauseKind
from ..exceptions import InvalidJobError
from ..lifecycle import operate
from ..lifecycle.keyset import Keyset
from ..models import Pause
from ..store import store_for
from .base import ReadOnlyMixin
from .scope import scope_of, tenant_field
from .words import name_of, when


class PauseForm(forms.ModelForm):  # type: ignore[type-arg] # generic in the stubs alone
    """Asks what to pause."""

    class Meta:
        model = Pause
        fields = ("kind", "name")
        help_texts = {
            "name": gettext_lazy("The queue's or the tenant's name, or the task's dotted path as its jobs show it."),
        }

    def clean(self) -> dict[str, Any]:
        """Refuse what no job could have, by the rule that the operation has."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if "kind" in given and "name" in given:
            try:
                given["name"] = operate.pausable(**{given["kind"]: given["name"]})[1]
            except InvalidJobError as error:
                self.add_error("name", str(error))
        return given


class PauseAdminMixin(ReadOnlyMixin):
    """Pauses by kind and name. Whoever may pause queues may add and end them."""

    actions = ("resume",)
    form = PauseForm
    keyset = Keyset(("kind", "name"))
    list_display = ("kind", "name", "paused", "paused_by")
    search_fields = ("name",)
    empty_text = gettext_lazy("Nothing is paused. Add a pause to keep workers from a queue, a tenant or a task.")
    readonly_fields = ("paused", "paused_by")

    paused = when("paused_at", gettext_lazy("paused"))

    def within(self, scope: Scope, rows: QuerySet[Pause]) -> QuerySet[Pause]:
        """Return the pauses of the scope's tenants, and those of queues and tasks, which keep every tenant waiting."""
        own = scope.apply(rows, "name") if scope.is_limited else rows
        return scope.share(rows).exclude(kind=PauseKind.TENANT) | own.filter(kind=PauseKind.TENANT)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Let those who may see some tenants pause these; queues and tasks are every tenant's."""
        scope = scope_of(request)
        if scope.is_limited and db_field.name == "name":
            return tenant_field(scope, label=capfirst(db_field.verbose_name))
        if scope.is_limited and db_field.name == "kind":
            kind = PauseKind.TENANT
            return forms.ChoiceField(choices=[(kind, kind.label)], label=capfirst(db_field.verbose_name))
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Pause | None = None) -> tuple[str, ...]:
        """Return what a new pause is asked for, or what a pause shows."""
        return ("kind", "name") if obj is None else ("kind", "name", *self.readonly_fields)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may pause."""
        return self.has_pause_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may look, as whoever may pause may."""
        return super().has_view_permission(request, obj) or self.has_pause_permission(request)

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the user may pause and resume."""
        return request.user.has_perm(f"{self.opts.app_label}.pause_queue")

    def save_model(self, request: HttpRequest, obj: Pause, form: Any, change: bool) -> None:
        """Pause what the form asked for."""
        named: dict[str, str] = {obj.kind: obj.name}
        operate.pause(**named, by=name_of(request.user), database=self.database)
        obj.pk = self.get_queryset(request).get(kind=obj.kind, name=obj.name).pk

    @admin.action(permissions=["pause"], description=gettext_lazy("End selected %(verbose_name_plural)s"))
    def resume(self, request: HttpRequest, queryset: QuerySet[Pause]) -> None:
        """Let workers begin what the selected pauses keep from them."""
        scope, count = scope_of(request), 0
        mine = scope.apply(queryset, "name").filter(kind=PauseKind.TENANT) if scope.is_limited else queryset
        for pause in mine:
            with store_for(self.database).transaction():
                named: dict[str, str] = {pause.kind: pause.name}
                count += operate.resume(**named, database=self.database)
                self.log_change(request, pause, _("Resumed."))
        told = ngettext("%(count)d pause was ended.", "%(count)d pauses were ended.", count)
        self.message_user(request, told % {"count": count})

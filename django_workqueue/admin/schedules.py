"""The screen of schedules: when each fires, what is wrong with it; making, editing, switching and running them once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ..conf import get_settings
from ..domain import masking
from ..domain.encoding import decode
from ..domain.states import OffReason, Origin
from ..exceptions import InvalidJobError, TaskNotRegisteredError, WorkQueueError
from ..lifecycle import reschedule
from ..lifecycle.keyset import Keyset
from ..models import Schedule
from ..store import store_for
from .base import Fieldset
from .changelist import BoundedChangeList
from .firings import ScheduleChangeList, history_of
from .operating import OperatingMixin
from .overview import Links
from .revealing import json_of
from .schedule_operations import RUN, SWITCH_OFF, SWITCH_ON
from .scope import scope_of, tenant_field
from .words import age, bounded, coloured, duration, read_at, when

TEXT_ROWS = {"rows": 2}
WORTH_A_WORD = timedelta(seconds=5)
"""How late a firing must be for the list to say so: workers look every few seconds."""


if TYPE_CHECKING:
    ModelForm = forms.ModelForm[Schedule]
else:
    ModelForm = forms.ModelForm


class ScheduleForm(ModelForm):
    """What a person says of a schedule. What cannot be followed is refused beside the field that says it."""

    class Meta:
        model = Schedule
        fields = tuple(name for name in reschedule.EDITABLE if name != "off_reason")
        widgets = {"args": forms.Textarea(TEXT_ROWS), "kwargs": forms.Textarea(TEXT_ROWS)}
        help_texts = {
            "task": gettext_lazy("The dotted path, such as shop.tasks.send_digest."),
            "args": gettext_lazy("A JSON list."),
            "kwargs": gettext_lazy("A JSON object."),
            "cron": gettext_lazy("Five fields: minute, hour, day of the month, month, day of the week. Or:"),
            "interval": gettext_lazy("Hours, minutes and seconds, such as 00:05:00; days stand in front: 1 00:00:00."),
            "zone": gettext_lazy("Such as Europe/Berlin; empty stands for the project's own."),
            "starts_at": gettext_lazy("Nothing fires before it."),
            "ends_at": gettext_lazy("Nothing fires after it."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is not None:
            self.initial.update(masking.Veil.of(self.instance).columns)

    def clean_args(self) -> str:
        """Refuse what is no JSON list."""
        return self._json("args", list)

    def clean_kwargs(self) -> str:
        """Refuse what is no JSON object."""
        return self._json("kwargs", dict)

    def clean_zone(self) -> str:
        """Write the project's zone down where none is given: a schedule must not move when that setting does."""
        return self.cleaned_data["zone"] or settings.TIME_ZONE

    def clean(self) -> dict[str, Any]:
        """Put back what was masked and is left as it is. Another task is given nothing but what is typed for it."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if not {"task", "args", "kwargs"} <= given.keys():
            return given
        row = self.instance if given["task"] == self.instance.task else Schedule(task=given["task"])
        try:
            restored = masking.unmasked(row, decode(given["args"], list), decode(given["kwargs"], dict))
        except InvalidJobError as error:
            self.add_error(None, str(error))
            return given
        texts = zip(("args", "kwargs"), map(json.dumps, restored), strict=True)
        return given | {name: text for name, text in texts if masking.MASKED in given[name]}

    def validate_unique(self) -> None:
        """Refuse a name that is taken, in the queue's own database."""
        others = Schedule.objects.using(get_settings().database).filter(name=self.instance.name)
        if others.exclude(pk=self.instance.pk).exists():
            self.add_error("name", _("There is a schedule of this name."))

    def _json(self, name: str, kind: type) -> str:
        text: str = self.cleaned_data[name]
        try:
            decode(text, kind)
        except ValueError as error:
            raise forms.ValidationError(_("This cannot be read: %(problem)s.") % {"problem": error}) from error
        return text

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc] # Django's own name for the step that fills the row
        if not self.errors:
            try:
                reschedule.check(self.instance)
            except TaskNotRegisteredError as error:
                self.add_error("task", str(error))
            except WorkQueueError as error:
                self.add_error(self._field_of(str(error)), str(error))

    def _field_of(self, problem: str) -> str | None:
        """Return the field that a message of ours begins with; None where it begins with another word."""
        word = re.match(r"\w*", problem)
        return word[0] if word and word[0] in self.fields else None


class ScheduleAdminMixin(OperatingMixin):
    """Schedules by name. What is defined in code is edited there; here it can be switched and run once."""

    form = ScheduleForm
    keyset = Keyset(("name",))
    actions = ("run_once", "switch_on", "switch_off")
    operations = (RUN, SWITCH_ON, SWITCH_OFF)
    change_form_template = "admin/django_workqueue/schedule/change_form.html"
    list_display = ("name", "task", "words", "next", "last_run", "standing", "origin")
    search_fields = ("name", "task")
    empty_text = gettext_lazy("There is no schedule. Add one here, or declare one in code by schedule= on a task.")
    readonly_fields = ("standing", "next", "last", "upcoming", "shown_fault", "origin")

    shown_args = json_of("args", gettext_lazy("arguments"))
    shown_kwargs = json_of("kwargs", gettext_lazy("keyword arguments"))
    next = when("next_at", gettext_lazy("next"))
    last = when("last_at", gettext_lazy("last"))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Fieldset]:
        """Return what can be said of a schedule, and how it stands where there is one."""
        standing: list[Fieldset] = [(None, {"fields": self.readonly_fields})] if obj else []
        is_edited = obj is None or self.has_change_permission(request, obj)
        arguments = ("args", "kwargs") if is_edited else ("shown_args", "shown_kwargs")
        return [
            *standing,
            (_("What"), {"fields": ("name", "task", *arguments)}),
            (_("When"), {"fields": ("cron", "interval", "zone", "starts_at", "ends_at", "enabled")}),
            (_("How"), {"fields": ("catch_up", "overlap")}),
            (_("Where"), {"fields": ("queue", "tenant", "priority")}),
        ]

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Let those who may see some tenants make schedules of these."""
        scope = scope_of(request)
        if scope.is_limited and db_field.name == "tenant":
            return tenant_field(scope, label=capfirst(db_field.verbose_name))
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BoundedChangeList]:
        """Return the list that reads the last firing of each row."""
        return ScheduleChangeList

    def page_context(self, request: HttpRequest, obj: Schedule) -> dict[str, Any]:
        """Add the firings that are kept."""
        firings = history_of(obj, Links(request, self.admin_site.name), self.database)
        return super().page_context(request, obj) | {"firings": firings}

    # -- permissions ---------------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may make schedules."""
        return self._holds(request, "add")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may edit schedules. One of the code would be changed back."""
        return self._holds(request, "change") and (obj is None or obj.origin == Origin.ADMIN)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may delete schedules. One that is in the code would come back."""
        in_code = obj is not None and obj.origin == Origin.CODE and obj.off_reason != OffReason.REMOVED
        return self._holds(request, "delete") and not in_code

    def has_switch_permission(self, request: HttpRequest) -> bool:
        """Whether the user may switch schedules on and off."""
        return self._holds(request, "switch")

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Whether the user may run schedules once."""
        return self._holds(request, "run")

    def _holds(self, request: HttpRequest, verb: str) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.{verb}_{self.opts.model_name}")

    # -- changes -------------------------------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: Any) -> None:
        """Store a schedule, planned anew where its times are others."""
        reschedule.keep(obj, database=self.database)

    def delete_model(self, request: HttpRequest, obj: Schedule) -> None:
        """Delete a schedule."""
        reschedule.remove(obj.name, database=self.database)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Delete schedules one by one."""
        for row in queryset:
            self.delete_model(request, row)

    @admin.action(permissions=["run"], description=gettext_lazy("Run selected %(verbose_name_plural)s once now"))
    def run_once(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Enqueue a job of each, whether it is on or off."""
        count = self._each(request, queryset, lambda name: not self._run(name), _("Run once."))
        told = ngettext("%(count)d job was enqueued.", "%(count)d jobs were enqueued.", count)
        self.message_user(request, told % {"count": count})

    @admin.action(permissions=["switch"], description=gettext_lazy("Switch selected %(verbose_name_plural)s on"))
    def switch_on(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Let the selected schedules fire again, from their next firings on."""
        count = self._each(request, queryset, self._switcher(reschedule.switch_on), _("Switched on."))
        told = ngettext("%(count)d schedule was switched on.", "%(count)d schedules were switched on.", count)
        self.message_user(request, told % {"count": count})

    @admin.action(permissions=["switch"], description=gettext_lazy("Switch selected %(verbose_name_plural)s off"))
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Keep the selected schedules from firing."""
        count = self._each(request, queryset, self._switcher(reschedule.switch_off), _("Switched off."))
        told = ngettext("%(count)d schedule was switched off.", "%(count)d schedules were switched off.", count)
        self.message_user(request, told % {"count": count})

    def _run(self, name: str) -> bool:
        """Run a schedule once, and return whether the job of an earlier firing is still there instead."""
        return reschedule.run_once(name, database=self.database).duplicate

    def _switcher(self, switch: Callable[..., bool]) -> Callable[[str], bool]:
        return lambda name: switch(name, database=self.database)

    def _each(self, request: HttpRequest, rows: QuerySet[Schedule], act: Callable[[str], bool], log_text: str) -> int:
        """Do it to each of ``rows`` and log it, tell what was refused, and return how many it was done to."""
        count = 0
        for row in chain.from_iterable(self.keyset.batches(rows, 100)):
            try:
                with store_for(self.database).transaction():
                    if act(row.name):
                        self.log_change(request, row, log_text)
                        count += 1
            except WorkQueueError as error:
                self.message_user(request, f"{row.name}: {error}", messages.WARNING)
        return count

    # -- columns -------------------------------------------------------------------------------------------------

    @admin.display(description=gettext_lazy("when"))
    def words(self, row: Schedule) -> str:
        """Show in words when it fires."""
        return reschedule.words_of(row)

    @admin.display(description=gettext_lazy("state"))
    def standing(self, row: Schedule) -> str:
        """Show whether it fires, and why it does not."""
        if not row.enabled:
            return coloured("idle", str(OffReason(row.off_reason or OffReason.PERSON).label))
        if row.fault:
            return coloured("bad", _("Passed over: at fault") if row.next_at is None else _("On; see its fault"))
        # One that nobody has looked at yet has no plan.
        is_over = row.plan and row.next_at is None
        return coloured("idle", _("Over")) if is_over else coloured("good", _("On"))

    @admin.display(description=gettext_lazy("last"))
    def last_run(self, row: Any) -> str:
        """Show the last firing, where its job is by now, and how late it fired where that is worth a word."""
        if not row.last_state:
            return age(row.last_at, read_at(row))
        late = _("%(time)s late") % {"time": duration(row.last_late)} if row.last_late >= WORTH_A_WORD else ""
        return format_html("{} {} {}", age(row.last_at, read_at(row)), row.last_state, late)

    @admin.display(description=gettext_lazy("next firings"))
    def upcoming(self, row: Schedule) -> str:
        """Show the next five firings, by the clock on the wall of its zone."""
        moments = reschedule.upcoming(row, read_at(row))
        return format_html_join("", "<div>{}</div>", ((f"{each:%a %Y-%m-%d %H:%M:%S %Z}",) for each in moments)) or "-"

    @admin.display(description=gettext_lazy("fault"))
    def shown_fault(self, row: Schedule) -> str:
        """Show what is wrong with it."""
        return bounded(row.fault) or "-"

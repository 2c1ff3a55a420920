"""What may be asked for beside an operation: forms that need no script, and how the log tells their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from ..exceptions import InvalidJobError
from ..lifecycle.dead_letters import MOST_NOTE
from ..lifecycle.enqueue import MAX_ATTEMPTS, check_text
from ..models.base import NAME_LENGTH

T = TypeVar("T")

MOST_REASON = 500
MOST_MINUTES = 7 * 24 * 60


class JsonField(forms.JSONField):
    """JSON of which every value can be shown again: half a surrogate is no text of a page."""

    def prepare_value(self, value: Any) -> Any:
        """Return the text for the page."""
        text = super().prepare_value(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            return json.dumps(value)
        return text


class OptionsForm(forms.Form):
    """Fields that may be left empty unless they say otherwise. What they clean to can be stored as JSON."""

    use_required_attribute = False

    @classmethod
    def told(cls, options: Mapping[str, Any]) -> str:
        """Return what was chosen, for the log."""
        names = [name for name in cls.field_order or cls.base_fields if name not in cls._untold]
        chosen = [(cls.base_fields[name].label, options.get(name)) for name in names]
        return " ".join(f"{capfirst(str(label))}: {value}." for label, value in chosen if value not in {None, ""})

    _untold: frozenset[str] = frozenset()


class ReasonForm(OptionsForm):
    """Why it is done."""

    reason = forms.CharField(label=_("reason"), max_length=MOST_REASON, help_text=_("Kept in the log of changes."))


class NoteForm(OptionsForm):
    """What others should know."""

    note = forms.CharField(label=_("note"), max_length=MOST_NOTE, required=False, widget=forms.Textarea({"rows": 3}))


class _QueueForm(OptionsForm):
    queue = forms.CharField(
        label=_("to the queue"), max_length=NAME_LENGTH, required=False, help_text=_("Empty: the one it was in.")
    )

    def clean_queue(self) -> str:
        """Refuse what is no name of a queue."""
        name: str = self.cleaned_data["queue"]
        try:
            check_text("queue", name, NAME_LENGTH, may_be_empty=True)
        except InvalidJobError as error:
            raise ValidationError(str(error)) from error
        return name


class _BackForm(_QueueForm):
    attempts = forms.IntegerField(
        label=_("further attempts"),
        min_value=1,
        max_value=MAX_ATTEMPTS,
        required=False,
        help_text=_("Empty: as many as the queue gives a new job."),
    )
    reason = forms.CharField(label=_("reason"), max_length=MOST_REASON, required=False)


class RequeueForm(_BackForm):
    """How they come back."""

    minutes = forms.IntegerField(
        label=_("spread over minutes"),
        min_value=0,
        max_value=MOST_MINUTES,
        required=False,
        help_text=_("Each becomes due at a moment of its own within that time. Empty: all at once."),
    )
    field_order = ("minutes", "queue", "attempts", "reason")

    @staticmethod
    def spread(options: Mapping[str, Any]) -> timedelta | None:
        """Return the time that was asked for."""
        return timedelta(minutes=options["minutes"]) if options.get("minutes") else None


class AmendForm(_BackForm):
    """With which arguments it comes back."""

    # Not required: to Django an empty list or object is no answer.
    args = JsonField(label=_("arguments"), required=False, widget=forms.Textarea({"rows": 4}))
    kwargs = JsonField(label=_("keyword arguments"), required=False, widget=forms.Textarea({"rows": 4}))
    field_order = ("args", "kwargs", "queue", "attempts", "reason")
    # The log is read by more people than may see arguments.
    _untold = frozenset({"args", "kwargs"})

    def clean_args(self) -> list[Any]:
        """Refuse what is no list."""
        return _of_type(self.cleaned_data["args"], list, _("Write a JSON list, such as [17]."))

    def clean_kwargs(self) -> dict[str, Any]:
        """Refuse what is no object."""
        return _of_type(self.cleaned_data["kwargs"], dict, _('Write a JSON object, such as {"copy": true}.'))


class MoveForm(_QueueForm):
    """Where it shall wait, and before whom."""

    priority = forms.IntegerField(
        label=_("priority"),
        min_value=-100,
        max_value=100,
        required=False,
        help_text=_("From -100 to 100, among the jobs of its tenant. Empty: the one it has."),
    )
    reason = forms.CharField(label=_("reason"), max_length=MOST_REASON, required=False)
    field_order = ("queue", "priority", "reason")

    def clean(self) -> None:
        """Refuse to change nothing."""
        given = self.cleaned_data
        if not self.errors and not given.get("queue") and given.get("priority") is None:
            raise ValidationError(_("Name a queue or a priority."))


class NamedForm(OptionsForm):
    """Asks to type the name of what is meant: a button is pressed too easily."""

    reason = forms.CharField(label=_("reason"), max_length=MOST_REASON, help_text=_("Kept in the log of changes."))
    name = forms.CharField(label=_("type its name"), max_length=NAME_LENGTH)
    _untold = frozenset({"name"})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].help_text = self.initial["expected"]

    def clean_name(self) -> str:
        """Refuse another name than the one that the page is about."""
        name: str = self.cleaned_data["name"]
        if name != self.initial["expected"]:
            raise ValidationError(_("This is not the name: it is %(name)s.") % {"name": self.initial["expected"]})
        return name


class MoveAllForm(NamedForm, _QueueForm):
    """Where all of them shall wait."""

    queue = forms.CharField(label=_("to the queue"), max_length=NAME_LENGTH)
    field_order = ("queue", "reason", "name")

    def clean_queue(self) -> str:
        """Refuse what is no other queue."""
        name = super().clean_queue()
        if name in {"", self.initial["expected"]}:
            raise ValidationError(_("Name another queue."))
        return name


class CopyForm(OptionsForm):
    """Why it is done, and what tells a page that is sent twice from two decisions."""

    reason = forms.CharField(label=_("reason"), max_length=MOST_REASON, required=False)
    seed = forms.UUIDField(required=False, initial=uuid4, widget=forms.HiddenInput)
    _untold = frozenset({"seed"})

    def clean_seed(self) -> str:
        """Return it as text, a new one where a program left it out."""
        return str(self.cleaned_data["seed"] or uuid4())


def _of_type(value: Any, kind: type[T], problem: Any) -> T:
    if not isinstance(value, kind):
        raise ValidationError(problem)
    return value


def stored_json(text: str) -> Any:
    """Return what stored JSON text says; the text itself, for a person to mend, where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

"""What is masked, by which names, and what becomes of it when a person types over it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_workqueue.checks import check_settings
from django_workqueue.conf import get_settings
from django_workqueue.domain.masking import CUT, CUT_END, MASKED, Veil, mask_json, unmasked
from django_workqueue.exceptions import InvalidJobError

MASK = ["*TOKEN*", "codes", "password", "Card"]


@dataclass
class Row:
    """A job as masking sees it."""

    args: str = "[]"
    kwargs: str = "{}"
    task: str = "tests.samples.sign_in"
    metadata: str = "{}"


@pytest.fixture(autouse=True)
def _masked(settings):
    settings.WORKQUEUE = {"MASK": MASK}


def shown(**columns):
    """Return arguments as they are shown."""
    columns = {name: json.dumps(value) if name != "task" else value for name, value in columns.items()}
    veil = Veil.of(Row(**columns))
    return json.loads(veil.columns["args"]), json.loads(veil.columns["kwargs"])


def test_positional_argument_is_masked_by_the_name_that_the_signature_gives_it():
    """sign_in(user, token, *codes): what follows is known by the name of what gathers it."""
    assert shown(args=["olga", "t-1", 1, 2]) == (["olga", MASKED, MASKED, MASKED], {})


def test_keyword_is_masked_by_its_name_whatever_the_case_and_the_value():
    """Even an empty value is hidden: that there is none may be worth knowing."""
    given = {"user": "olga", "API_Token": None, "token": "", "extra": 1}

    assert shown(kwargs=given) == ([], {"user": "olga", "API_Token": MASKED, "token": MASKED, "extra": 1})


def test_keys_of_objects_are_masked_at_any_depth():
    """A profile holds a card, a list holds profiles; the name decides wherever it stands."""
    profile = {"name": "Olga", "card": {"number": 4}, "older": [{"Password": "x", "city": "Bern"}]}

    masked = {"name": "Olga", "card": MASKED, "older": [{"Password": MASKED, "city": "Bern"}]}
    assert shown(args=[profile, "t"], kwargs={"profile": profile}) == ([masked, MASKED], {"profile": masked})


@pytest.mark.parametrize("task", ["gone.tasks.sign_in", "tests.samples.not_a_task", "", "tests.samples.\x00"])
def test_positional_arguments_of_an_unknown_task_are_all_masked(task):
    """Their names cannot be told; keywords bring theirs along."""
    assert shown(task=task, args=[1, [2]], kwargs={"a": 3}) == ([MASKED, MASKED], {"a": 3})


def test_positional_arguments_that_do_not_fit_are_all_masked():
    """Between two deploys the second may have been the token, and the first now has its place."""
    assert shown(args=["olga"]) == ([MASKED], {})
    assert shown(args=["olga", "t"], kwargs={"user": "olga"}) == ([MASKED, MASKED], {"user": "olga"})


@pytest.mark.parametrize(
    ("task", "args", "masked"),
    [
        ("tests.samples.describe", [], []),
        ("tests.samples.describe_ctx", ["t"], ["t"]),
        ("tests.samples.send", ["a@b.c"], ["a@b.c"]),
        ("tests.samples.plain_with_context", [], []),
    ],
)
def test_context_is_no_argument(task, args, masked):
    """What the worker adds does not shift the names of what the job was given."""
    assert shown(task=task, args=args)[0] == masked


@pytest.mark.parametrize("text", ["[not json", "", "7", "[" * 3000, '{"token": "s"}'])
def test_what_cannot_be_looked_into_is_hidden_as_a_whole(text):
    """The text of broken JSON may hold anything."""
    veil = Veil.of(Row(args=text, kwargs='{"user": "olga"}'))

    assert veil.columns["args"] == f'"{MASKED}"'
    assert veil.names == ("args",)
    assert Veil.of(Row(args='["olga"]', kwargs=text[:1])).columns["args"] == f'"{MASKED}"'


def test_doubled_keys_hide_nothing():
    """JSON may say a key twice; only what was looked at is shown."""
    veil = Veil.of(Row(kwargs='{"user": {"token": "secret"}, "user": "olga"}'))

    assert "secret" not in veil.columns["kwargs"]


def test_metadata_and_results_are_masked_by_their_keys():
    """A result often holds what the task was given."""
    row = Row(metadata='{"token": "t", "team": "shop"}')
    row.result = '{"rows": [{"password": "p"}]}'

    columns = Veil.of(row).columns

    assert json.loads(columns["metadata"]) == {"token": MASKED, "team": "shop"}
    assert json.loads(columns["result"]) == {"rows": [{"password": MASKED}]}
    assert json.loads(mask_json(row.result)) == {"rows": [{"password": MASKED}]}


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("hunter-22", "ValueError: no user for hunter-22 or 'hunter-22'"),
        ("it's\na \\ secret", 'KeyError: "it\'s\\na \\\\ secret"'),
        (4111111111111111, "card 4111111111111111 was declined"),
        ({"inner": ["deep-secret"]}, "saw deep-secret"),
        ("first line\nsecond line", '  File "x.py"\nsecond line'),
    ],
)
def test_texts_are_told_without_the_masked_values_that_they_quote(secret, text):
    """An exception quotes what it was given, as it is or as repr() writes it."""
    veil = Veil.of(Row(kwargs=json.dumps({"user": "olga", "token": secret})))

    cleaned = veil.text(text)

    assert MASKED in cleaned
    for part in ("hunter", "secret", "4111", "second"):
        assert part not in cleaned


def test_value_that_a_cut_has_parted_is_found_on_both_sides():
    """Of a long message the middle is left out; what is left of a token is a good part of it."""
    veil = Veil.of(Row(kwargs=json.dumps({"user": "olga", "token": "0123456789abcdefghij"})))
    text = f"no: 0123456789{CUT}7000{CUT_END}abcdefghij, and 0123456789 with abcdefghij"

    assert veil.text(text) == f"no: {MASKED}{CUT}7000{CUT_END}{MASKED}, and 0123456789 with abcdefghij"
    assert veil.text(f"end{CUT}1{CUT_END}start") == f"end{CUT}1{CUT_END}start"


def test_short_values_are_left_in_texts():
    """A value of three characters would be found everywhere."""
    veil = Veil.of(Row(kwargs='{"token": "abc"}'))

    assert veil.text("no alphabet begins with abc") == "no alphabet begins with abc"


def test_names_of_what_is_hidden_are_known():
    """The log says what was revealed, by name."""
    row = Row(args='["olga", "t"]', kwargs='{"profile": {"card": 1}}', metadata='{"password": 1}')

    assert Veil.of(row).names == ("card", "token", "password")


def test_nothing_is_touched_where_nothing_is_masked(settings):
    """The stored text is shown as it is."""
    settings.WORKQUEUE = {}
    row = Row(args='[ 1e22, "token"', kwargs='{"token":"t"}')

    veil = Veil.of(row)

    assert (veil.columns["args"], veil.columns["kwargs"]) == (row.args, row.kwargs)
    assert veil.text("t") == "t"
    assert mask_json("[ 1]") == "[ 1]"
    assert unmasked(row, [MASKED], {}) == ([MASKED], {})


# -- typing over it ----------------------------------------------------------------------------------------------------

STORED = Row(args='["olga", "secret-t"]', kwargs='{"profile": {"card": "secret-c", "city": "Bern"}, "note": "hello"}')


def test_masked_value_stays_where_it_is_left_and_changes_where_it_is_typed():
    """The address was wrong, the token is not."""
    typed = ["vera", MASKED], {"profile": {"card": "new", "city": "Bonn"}, "note": "hello"}

    assert unmasked(STORED, *typed) == (["vera", "secret-t"], typed[1])


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([MASKED, "t"], {}),
        (["olga", "t"], {"note": MASKED}),
        (["olga", "t"], {"profile": {"city": MASKED}}),
        (["olga", "t"], {"profile": MASKED}),
        (["olga", "t"], {"other": MASKED}),
        (["olga", "t", MASKED], {}),
        (["olga", [MASKED]], {}),
        (["olga", "t"], {"profile": [MASKED]}),
        (["olga", "t"], {"profile": {"card": {"x": MASKED}}}),
    ],
)
def test_masked_value_cannot_be_moved_to_where_it_would_be_shown(args, kwargs):
    """Who may change arguments and may not see them must not read them by putting them under another name."""
    with pytest.raises(InvalidJobError, match="stands where no masked value was"):
        unmasked(STORED, args, kwargs)


def test_masked_value_cannot_be_uncovered_by_making_the_call_fit():
    """All of a call that does not fit is masked; mended, the first argument would be shown under its name."""
    broken = Row(args='["secret-t"]')

    with pytest.raises(InvalidJobError):
        unmasked(broken, [MASKED, "t"], {})
    assert unmasked(broken, ["olga", "t"], {}) == (["olga", "t"], {})


def test_arguments_that_cannot_be_read_are_typed_anew():
    """There is no place in them that a value could keep."""
    with pytest.raises(InvalidJobError):
        unmasked(Row(args="[broken"), [MASKED], {})
    assert unmasked(Row(args="[broken"), ["olga", "t"], {}) == (["olga", "t"], {})


# -- the setting -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["token", [7], [""], ["  "], {"token": 1}, None])
def test_bad_list_of_names_is_a_fault(settings, value):
    """A string would mask every name of one of its letters."""
    settings.WORKQUEUE = {"MASK": value}

    assert [message.id for message in check_settings()] == ["django_workqueue.E002"]
    with pytest.raises(ImproperlyConfigured, match="must be a list of names"):
        get_settings()


def test_faults_do_not_quote_the_arguments_of_schedules(settings):
    """The checks print what they find into the log of a deploy."""
    settings.WORKQUEUE = {"SCHEDULES": [{"kwargs": {"token": "secret"}}]}

    assert "secret" not in str(check_settings())

"""What the screens of live, finished and dead jobs share."""

from __future__ import annotations

import pytest

from tests.admin.pages import page, told
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory

pytestmark = pytest.mark.django_db

PLACES = {"job": JobFactory, "finishedjob": FinishedJobFactory, "deadletter": DeadLetterFactory}


@pytest.mark.parametrize("model", PLACES)
def test_page_shows_the_whole_job(viewer, model):
    """Everything that is stored is shown, the arguments spread over lines."""
    job = PLACES[model](
        args='["ö",1]', kwargs='{"a":null}', metadata='{"trace":"x1"}', tenant="acme", dedupe_key="k-7", priority=42
    )

    content = viewer.get(page(model, job.pk)).content.decode()

    for text in (str(job.pk), "&quot;ö&quot;,\n  1", "&quot;a&quot;: null", "x1", "acme", "k-7", ">42<", job.task):
        assert text in content, text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("asked", PLACES)
def test_page_follows_a_job_that_has_moved(viewer, place, asked):
    """A job that ended between the list and the click is not lost: its page says where it is."""
    job = PLACES[place]()

    response = viewer.get(page(asked, job.pk), follow=True)

    assert response.status_code == 200
    assert response.context["original"] == job
    assert told(response) == ([] if place == asked else ["This job has moved on; here it is now."])


def test_job_is_not_followed_where_it_may_not_be_seen(browser):
    """The redirect must not tell that a dead letter exists to someone who may not look at dead letters."""
    letter = DeadLetterFactory()

    response = browser("view_job").get(page("job", letter.pk))

    assert response.url == "/admin/"


def test_job_that_is_nowhere_leads_to_the_index(viewer):
    """Its retention may be over."""
    job = JobFactory()
    job.delete()

    assert viewer.get(page("job", job.pk)).url == "/admin/"


@pytest.mark.parametrize("model", PLACES)
def test_search_box_explains_itself(viewer, model):
    """Nobody guesses a language of words and colons."""
    PLACES[model]()

    assert b"tenant:acme" in viewer.get(page(model)).content

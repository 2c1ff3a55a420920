"""What the shop of the scene does. None of it needs anything but the queue."""

from __future__ import annotations

from django_workqueue import JobContext, task


@task(queue_name="mail")
def send_receipt(order_id: int, *, copy: bool = False) -> dict[str, bool]:
    """E-mail the receipt for an order."""
    return {"sent": True, "copy": copy}


@task(queue_name="webhooks")
def deliver_webhook(order_id: int) -> dict[str, int]:
    """Tell a seller's system about an order."""
    return {"status": 204}


@task(queue_name="payments")
def charge_card(order_id: int, *, amount: str) -> dict[str, str]:
    """Charge a card."""
    return {"charged": amount}


@task(queue_name="media")
def resize_photo(photo_id: int) -> list[int]:
    """Make a smaller copy of a photo."""
    return [photo_id, 640]


@task(queue_name="imports", takes_context=True)
def import_catalogue(context: JobContext, supplier: str) -> int:
    """Take over a supplier's catalogue."""
    context.progress(1, 1, supplier)
    return 1


@task(queue_name="reports")
def build_report(month: str) -> str:
    """Add up a month."""
    return month


@task(queue_name="reports")
def mail_report(month: str) -> None:
    """Send the report of a month to its readers."""


@task(queue_name="media")
def make_album(photos: list[list[int]], *, title: str) -> dict[str, object]:
    """Put photos together."""
    return {"title": title, "photos": len(photos)}


@task(queue_name="mail")
def announce_album(album: dict[str, object]) -> str:
    """Tell the followers of a shop."""
    return f"{album['title']}: {album['photos']}"

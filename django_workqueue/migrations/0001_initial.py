"""The tables of the queue."""

from datetime import timedelta

import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="id")),
                ("worker", models.CharField(max_length=200, verbose_name="worker")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                ("acquired_at", models.DateTimeField(verbose_name="acquired")),
                ("renewed_at", models.DateTimeField(verbose_name="renewed")),
                ("expires_at", models.DateTimeField(verbose_name="expires")),
                ("deadline_at", models.DateTimeField(verbose_name="deadline")),
            ],
            options={
                "verbose_name": "lease",
                "verbose_name_plural": "leases",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False, verbose_name="name")),
                ("done", models.BigIntegerField(default=0, verbose_name="done")),
                ("failed", models.BigIntegerField(default=0, verbose_name="failed attempts")),
                ("dead", models.BigIntegerField(default=0, verbose_name="died")),
                ("cancelled", models.BigIntegerField(default=0, verbose_name="cancelled")),
                ("reaped", models.BigIntegerField(default=0, verbose_name="reaped")),
                ("window_started_at", models.DateTimeField(blank=True, null=True, verbose_name="rate window began")),
                ("window_taken", models.PositiveIntegerField(default=0, verbose_name="begun in the rate window")),
                ("duplicates", models.BigIntegerField(default=0, verbose_name="duplicates suppressed")),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "permissions": (
                    ("pause_queue", "Can pause and resume queues, tenants and tasks"),
                    ("move_queue", "Can move the jobs of a queue to another"),
                    ("purge_queue", "Can cancel all ready jobs of a queue"),
                ),
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.CharField(max_length=200, primary_key=True, serialize=False, verbose_name="id")),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("pid", models.IntegerField(verbose_name="process id")),
                ("origin", models.CharField(blank=True, default="", max_length=100, verbose_name="origin")),
                ("queues", models.TextField(verbose_name="queues")),
                ("slots", models.PositiveSmallIntegerField(verbose_name="slots")),
                ("versions", models.CharField(max_length=200, verbose_name="versions")),
                ("started_at", models.DateTimeField(verbose_name="started")),
                ("seen_at", models.DateTimeField(verbose_name="seen")),
                (
                    "clock_ahead",
                    models.DurationField(default=timedelta, verbose_name="clock ahead of the database's"),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("running", "Running"), ("quiet", "Quiet"), ("stopping", "Stopping")],
                        default="running",
                        max_length=8,
                        verbose_name="state",
                    ),
                ),
                (
                    "request",
                    models.CharField(
                        choices=[("work", "Work"), ("quiet", "Be quiet"), ("stop", "Stop")],
                        default="work",
                        max_length=5,
                        verbose_name="asked to",
                    ),
                ),
                ("requested_at", models.DateTimeField(blank=True, null=True, verbose_name="asked")),
                (
                    "requested_by",
                    models.CharField(blank=True, default="", max_length=150, verbose_name="asked by"),
                ),
                ("memory_bytes", models.BigIntegerField(default=0, verbose_name="memory in bytes")),
                ("running", models.PositiveIntegerField(default=0, verbose_name="running")),
                ("done", models.BigIntegerField(default=0, verbose_name="done")),
                ("failed", models.BigIntegerField(default=0, verbose_name="failed")),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "default_permissions": ("view",),
                "permissions": (("manage_worker", "Can quiet, stop and forget workers"),),
                "constraints": [models.UniqueConstraint(fields=("name",), name="dwq_worker_name")],
            },
        ),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False, verbose_name="id")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                ("tenant", models.CharField(blank=True, default="", max_length=100, verbose_name="tenant")),
                ("task", models.CharField(max_length=300, verbose_name="task")),
                ("args", models.TextField(default="[]", verbose_name="arguments")),
                ("kwargs", models.TextField(default="{}", verbose_name="keyword arguments")),
                ("priority", models.SmallIntegerField(default=0, verbose_name="priority")),
                ("attempts", models.PositiveSmallIntegerField(default=0, verbose_name="attempts")),
                ("max_attempts", models.PositiveSmallIntegerField(default=5, verbose_name="attempts allowed")),
                ("interruptions", models.PositiveSmallIntegerField(default=0, verbose_name="interruptions")),
                ("dedupe_key", models.CharField(blank=True, max_length=200, null=True, verbose_name="dedupe key")),
                ("dedupe_until_start", models.BooleanField(default=False, verbose_name="key is free while leased")),
                (
                    "dedupe_expires_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="dedupe key is free from"),
                ),
                (
                    "concurrency_key",
                    models.CharField(blank=True, max_length=200, null=True, verbose_name="concurrency key"),
                ),
                (
                    "concurrency_limit",
                    models.PositiveSmallIntegerField(blank=True, null=True, verbose_name="jobs of the key at once"),
                ),
                ("workflow", models.UUIDField(blank=True, null=True, verbose_name="workflow")),
                (
                    "enqueued_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="enqueued"),
                ),
                ("metadata", models.TextField(default="{}", verbose_name="metadata")),
                ("last_error", models.TextField(blank=True, default="", verbose_name="last error")),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("exhausted", "Attempts used up"),
                            ("rejected", "Rejected"),
                            ("unknown_task", "Unknown task"),
                            ("undecodable", "Undecodable arguments"),
                            ("cancelled", "Failed after it was to be cancelled"),
                        ],
                        max_length=12,
                        verbose_name="reason",
                    ),
                ),
                ("fingerprint", models.CharField(default="", max_length=32, verbose_name="fingerprint")),
                ("died_at", models.DateTimeField(verbose_name="died")),
                ("acknowledged_at", models.DateTimeField(blank=True, null=True, verbose_name="acknowledged")),
                (
                    "acknowledged_by",
                    models.CharField(blank=True, default="", max_length=150, verbose_name="acknowledged by"),
                ),
                ("note", models.TextField(blank=True, default="", verbose_name="note")),
            ],
            options={
                "verbose_name": "dead letter",
                "verbose_name_plural": "dead letters",
                "permissions": (
                    ("requeue_deadletter", "Can requeue dead letters"),
                    ("amend_deadletter", "Can requeue dead letters with changed arguments"),
                    ("discard_deadletter", "Can discard dead letters"),
                    ("acknowledge_deadletter", "Can acknowledge dead letters"),
                    ("copy_deadletter", "Can enqueue copies of dead letters"),
                ),
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["-died_at", "-id"], name="dwq_dead_newest"),
                    models.Index(fields=["fingerprint", "-died_at", "-id"], name="dwq_dead_group"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Failure",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="id")),
                ("job_id", models.UUIDField(verbose_name="job")),
                ("attempt", models.PositiveSmallIntegerField(verbose_name="attempt")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("error", "Error"),
                            ("timeout", "Timeout"),
                            ("lapsed", "Lease lapsed"),
                            ("capped", "Lease reached its cap"),
                            ("adopted", "Worker restarted"),
                            ("interrupted", "Interrupted by a stop"),
                            ("rejected", "Rejected"),
                            ("unknown_task", "Unknown task"),
                            ("undecodable", "Undecodable arguments"),
                        ],
                        max_length=12,
                        verbose_name="kind",
                    ),
                ),
                ("error_class", models.CharField(blank=True, default="", max_length=300, verbose_name="error class")),
                ("message", models.TextField(blank=True, default="", verbose_name="message")),
                ("traceback", models.TextField(blank=True, default="", verbose_name="traceback")),
                ("worker", models.CharField(max_length=200, verbose_name="worker")),
                ("lease_id", models.BigIntegerField(verbose_name="lease")),
                ("started_at", models.DateTimeField(verbose_name="started")),
                ("failed_at", models.DateTimeField(verbose_name="failed")),
                ("next_try_at", models.DateTimeField(blank=True, null=True, verbose_name="next try")),
            ],
            options={
                "verbose_name": "failure",
                "verbose_name_plural": "failures",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["job_id", "id"], name="dwq_failure_job")],
            },
        ),
        migrations.CreateModel(
            name="FinishedJob",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False, verbose_name="id")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                ("tenant", models.CharField(blank=True, default="", max_length=100, verbose_name="tenant")),
                ("task", models.CharField(max_length=300, verbose_name="task")),
                ("args", models.TextField(default="[]", verbose_name="arguments")),
                ("kwargs", models.TextField(default="{}", verbose_name="keyword arguments")),
                ("priority", models.SmallIntegerField(default=0, verbose_name="priority")),
                ("attempts", models.PositiveSmallIntegerField(default=0, verbose_name="attempts")),
                ("max_attempts", models.PositiveSmallIntegerField(default=5, verbose_name="attempts allowed")),
                ("interruptions", models.PositiveSmallIntegerField(default=0, verbose_name="interruptions")),
                ("dedupe_key", models.CharField(blank=True, max_length=200, null=True, verbose_name="dedupe key")),
                ("dedupe_until_start", models.BooleanField(default=False, verbose_name="key is free while leased")),
                (
                    "dedupe_expires_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="dedupe key is free from"),
                ),
                (
                    "concurrency_key",
                    models.CharField(blank=True, max_length=200, null=True, verbose_name="concurrency key"),
                ),
                (
                    "concurrency_limit",
                    models.PositiveSmallIntegerField(blank=True, null=True, verbose_name="jobs of the key at once"),
                ),
                ("workflow", models.UUIDField(blank=True, null=True, verbose_name="workflow")),
                (
                    "enqueued_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="enqueued"),
                ),
                ("metadata", models.TextField(default="{}", verbose_name="metadata")),
                ("last_error", models.TextField(blank=True, default="", verbose_name="last error")),
                (
                    "outcome",
                    models.CharField(
                        choices=[("succeeded", "Succeeded"), ("cancelled", "Cancelled")],
                        max_length=9,
                        verbose_name="outcome",
                    ),
                ),
                ("result", models.TextField(default="null", verbose_name="result")),
                ("worker", models.CharField(blank=True, default="", max_length=200, verbose_name="worker")),
                ("started_at", models.DateTimeField(blank=True, null=True, verbose_name="started")),
                ("finished_at", models.DateTimeField(verbose_name="finished")),
                ("expires_at", models.DateTimeField(verbose_name="kept until")),
            ],
            options={
                "verbose_name": "finished job",
                "verbose_name_plural": "finished jobs",
                "permissions": (("copy_finishedjob", "Can enqueue copies of finished jobs"),),
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["expires_at"], name="dwq_finished_expires")],
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="id")),
                (
                    "kind",
                    models.CharField(
                        choices=[("queue", "Queue"), ("tenant", "Tenant"), ("task", "Task")],
                        max_length=6,
                        verbose_name="kind",
                    ),
                ),
                ("name", models.CharField(max_length=300, verbose_name="name")),
                ("paused_at", models.DateTimeField(verbose_name="paused")),
                ("paused_by", models.CharField(blank=True, default="", max_length=150, verbose_name="paused by")),
            ],
            options={
                "verbose_name": "pause",
                "verbose_name_plural": "pauses",
                "default_permissions": ("view",),
                "constraints": [models.UniqueConstraint(fields=("kind", "name"), name="dwq_pause")],
            },
        ),
        migrations.CreateModel(
            name="QueueMinute",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="id")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                ("task", models.CharField(max_length=300, verbose_name="task")),
                ("minute", models.DateTimeField(verbose_name="minute")),
                ("worker", models.CharField(max_length=200, verbose_name="worker")),
                ("is_hour", models.BooleanField(default=False, verbose_name="of an hour")),
                ("done", models.PositiveIntegerField(default=0, verbose_name="done")),
                ("failed", models.PositiveIntegerField(default=0, verbose_name="failed attempts")),
                ("dead", models.PositiveIntegerField(default=0, verbose_name="died")),
                ("wait_histogram", models.TextField(default="", verbose_name="waits")),
                ("run_histogram", models.TextField(default="", verbose_name="runs")),
            ],
            options={
                "verbose_name": "minute of a queue",
                "verbose_name_plural": "minutes of queues",
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(fields=("minute", "queue", "task", "worker"), name="dwq_minute")
                ],
                "indexes": [
                    models.Index(fields=["minute"], condition=models.Q(is_hour=False), name="dwq_minute_single")
                ],
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="id")),
                ("name", models.CharField(max_length=150, unique=True, verbose_name="name")),
                ("task", models.CharField(max_length=300, verbose_name="task")),
                ("args", models.TextField(default="[]", verbose_name="arguments")),
                ("kwargs", models.TextField(default="{}", verbose_name="keyword arguments")),
                ("queue", models.CharField(default="default", max_length=100, verbose_name="queue")),
                ("tenant", models.CharField(blank=True, default="", max_length=100, verbose_name="tenant")),
                ("priority", models.SmallIntegerField(default=0, verbose_name="priority")),
                ("cron", models.CharField(blank=True, default="", max_length=200, verbose_name="cron line")),
                ("interval", models.DurationField(blank=True, null=True, verbose_name="interval")),
                ("zone", models.CharField(blank=True, default="", max_length=64, verbose_name="time zone")),
                ("starts_at", models.DateTimeField(blank=True, null=True, verbose_name="starts")),
                ("ends_at", models.DateTimeField(blank=True, null=True, verbose_name="ends")),
                (
                    "catch_up",
                    models.CharField(
                        choices=[
                            ("latest", "Make up for the last one"),
                            ("skip", "Skip them"),
                            ("all", "Make up for all"),
                        ],
                        default="latest",
                        max_length=6,
                        verbose_name="missed firings",
                    ),
                ),
                (
                    "overlap",
                    models.CharField(
                        choices=[("skip", "Skip the firing"), ("allow", "Run beside it")],
                        default="skip",
                        max_length=5,
                        verbose_name="while one is live",
                    ),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "off_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("person", "Switched off by a person"),
                            ("code", "Declared as off"),
                            ("removed", "No longer in the code"),
                        ],
                        default="",
                        max_length=7,
                        verbose_name="why off",
                    ),
                ),
                (
                    "origin",
                    models.CharField(
                        choices=[("code", "Code"), ("admin", "Admin")],
                        default="admin",
                        max_length=5,
                        verbose_name="defined in",
                    ),
                ),
                ("plan", models.CharField(blank=True, default="", max_length=32, verbose_name="planned for")),
                ("next_at", models.DateTimeField(blank=True, null=True, verbose_name="next")),
                (
                    "skew",
                    models.DurationField(default=timedelta, verbose_name="time let pass by tests"),
                ),
                ("last_at", models.DateTimeField(blank=True, null=True, verbose_name="last")),
                ("fault", models.TextField(blank=True, default="", verbose_name="fault")),
                (
                    "code_digest",
                    models.CharField(blank=True, default="", max_length=32, verbose_name="version in the code"),
                ),
                (
                    "former_digests",
                    models.TextField(blank=True, default="", verbose_name="former versions in the code"),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="created"),
                ),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "permissions": (
                    ("switch_schedule", "Can switch schedules on and off"),
                    ("run_schedule", "Can run schedules once now"),
                ),
                "indexes": [
                    models.Index(condition=models.Q(("enabled", True)), fields=["next_at"], name="dwq_schedule_next")
                ],
            },
        ),
        migrations.CreateModel(
            name="Firing",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="id")),
                ("due_at", models.DateTimeField(blank=True, null=True, verbose_name="due")),
                ("fired_at", models.DateTimeField(verbose_name="fired")),
                ("job_id", models.UUIDField(verbose_name="job")),
                ("skipped", models.BooleanField(default=False, verbose_name="skipped")),
                (
                    "schedule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.deletion.CASCADE,
                        related_name="firings",
                        to="django_workqueue.schedule",
                    ),
                ),
            ],
            options={
                "verbose_name": "firing",
                "verbose_name_plural": "firings",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["schedule", "-id"], name="dwq_firing")],
            },
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False, verbose_name="id")),
                ("tenant", models.CharField(blank=True, default="", max_length=100, verbose_name="tenant")),
                ("key", models.CharField(max_length=64, verbose_name="idempotency key")),
                ("digest", models.CharField(max_length=64, verbose_name="digest of the arguments")),
                ("job_id", models.UUIDField(verbose_name="job")),
                ("name", models.CharField(max_length=200, verbose_name="step")),
                (
                    "state",
                    models.CharField(
                        choices=[("begun", "Begun"), ("done", "Done"), ("unknown", "Unknown")],
                        default="begun",
                        max_length=7,
                        verbose_name="state",
                    ),
                ),
                ("outcome", models.TextField(blank=True, default="", verbose_name="outcome")),
                ("worker", models.CharField(blank=True, default="", max_length=200, verbose_name="worker")),
                ("lease_id", models.BigIntegerField(blank=True, null=True, verbose_name="lease")),
                ("begun_at", models.DateTimeField(verbose_name="begun")),
                ("done_at", models.DateTimeField(blank=True, null=True, verbose_name="done")),
                ("expires_at", models.DateTimeField(verbose_name="kept until")),
            ],
            options={
                "verbose_name": "step",
                "verbose_name_plural": "steps",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["job_id"], name="dwq_step_job"),
                    models.Index(fields=["expires_at"], name="dwq_step_expires"),
                ],
                "constraints": [models.UniqueConstraint(fields=("tenant", "key"), name="dwq_step_key")],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False, verbose_name="id")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                ("tenant", models.CharField(blank=True, default="", max_length=100, verbose_name="tenant")),
                ("task", models.CharField(max_length=300, verbose_name="task")),
                ("args", models.TextField(default="[]", verbose_name="arguments")),
                ("kwargs", models.TextField(default="{}", verbose_name="keyword arguments")),
                ("priority", models.SmallIntegerField(default=0, verbose_name="priority")),
                ("attempts", models.PositiveSmallIntegerField(default=0, verbose_name="attempts")),
                ("max_attempts", models.PositiveSmallIntegerField(default=5, verbose_name="attempts allowed")),
                ("interruptions", models.PositiveSmallIntegerField(default=0, verbose_name="interruptions")),
                ("dedupe_key", models.CharField(blank=True, max_length=200, null=True, verbose_name="dedupe key")),
                ("dedupe_until_start", models.BooleanField(default=False, verbose_name="key is free while leased")),
                (
                    "dedupe_expires_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="dedupe key is free from"),
                ),
                (
                    "concurrency_key",
                    models.CharField(blank=True, max_length=200, null=True, verbose_name="concurrency key"),
                ),
                (
                    "concurrency_limit",
                    models.PositiveSmallIntegerField(blank=True, null=True, verbose_name="jobs of the key at once"),
                ),
                ("workflow", models.UUIDField(blank=True, null=True, verbose_name="workflow")),
                (
                    "enqueued_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="enqueued"),
                ),
                ("metadata", models.TextField(default="{}", verbose_name="metadata")),
                ("last_error", models.TextField(blank=True, default="", verbose_name="last error")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("scheduled", "Scheduled"),
                            ("blocked", "Blocked"),
                            ("parked", "Parked"),
                            ("ready", "Ready"),
                            ("leased", "Leased"),
                        ],
                        default="ready",
                        max_length=9,
                        verbose_name="state",
                    ),
                ),
                (
                    "ready_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="ready"),
                ),
                ("lapses", models.PositiveSmallIntegerField(default=0, verbose_name="lapses in a row")),
                ("cancel_requested_at", models.DateTimeField(blank=True, null=True, verbose_name="cancel requested")),
                ("cancel_force", models.BooleanField(blank=True, null=True, verbose_name="cancel by force")),
                ("progress", models.TextField(blank=True, null=True, verbose_name="progress")),
                (
                    "rank",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django.db.models.expressions.CombinedExpression(
                            models.F("priority"), "*", models.Value(-1)
                        ),
                        output_field=models.SmallIntegerField(),
                        verbose_name="rank",
                    ),
                ),
                (
                    "lease",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="jobs",
                        to="django_workqueue.lease",
                        verbose_name="lease",
                    ),
                ),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "permissions": (
                    ("cancel_job", "Can cancel jobs"),
                    ("reschedule_job", "Can change when and where jobs run"),
                    ("reveal_job", "Can see masked values"),
                ),
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "ready")),
                        fields=["queue", "tenant", "rank", "ready_at", "id"],
                        name="dwq_job_ready",
                    ),
                    models.Index(
                        condition=models.Q(("state", "scheduled")), fields=["ready_at"], name="dwq_job_scheduled"
                    ),
                    models.Index(
                        condition=models.Q(("concurrency_key__isnull", False), ("state", "blocked")),
                        fields=["queue", "tenant", "concurrency_key", "rank", "ready_at", "id"],
                        name="dwq_job_blocked",
                    ),
                    models.Index(
                        condition=models.Q(("concurrency_key__isnull", False), ("state__in", ("ready", "leased"))),
                        fields=["queue", "tenant", "concurrency_key"],
                        name="dwq_job_slots",
                    ),
                    models.Index(condition=models.Q(("state", "parked")), fields=["task"], name="dwq_job_parked"),
                    models.Index(condition=models.Q(("lease__isnull", False)), fields=["lease"], name="dwq_job_lease"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("priority__range", (-100, 100))), name="dwq_job_priority"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease__isnull", False), ("state", "leased")),
                            models.Q(
                                ("lease__isnull", True), ("state__in", ("scheduled", "blocked", "parked", "ready"))
                            ),
                            _connector="OR",
                        ),
                        name="dwq_job_leased_has_lease",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("dedupe_key__isnull", False),
                            models.Q(
                                ("dedupe_until_start", False),
                                models.Q(("state", "leased"), _negated=True),
                                _connector="OR",
                            ),
                        ),
                        fields=("dedupe_key", "queue", "tenant"),
                        name="dwq_job_dedupe",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Workflow",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False, verbose_name="id")),
                ("tenant", models.CharField(blank=True, default="", max_length=100, verbose_name="tenant")),
                ("is_mixed", models.BooleanField(default=False, verbose_name="has jobs of several tenants")),
                ("title", models.CharField(blank=True, default="", max_length=300, verbose_name="title")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="running",
                        max_length=9,
                        verbose_name="state",
                    ),
                ),
                ("size", models.PositiveIntegerField(default=0, verbose_name="tasks")),
                ("done", models.PositiveIntegerField(default=0, verbose_name="tasks done")),
                ("culprit", models.UUIDField(blank=True, null=True, verbose_name="culprit")),
                ("problem", models.TextField(blank=True, default="", verbose_name="problem")),
                ("on_error", models.TextField(blank=True, default="", verbose_name="error callback")),
                ("on_error_job", models.UUIDField(blank=True, null=True, verbose_name="job of the error callback")),
                ("result", models.TextField(blank=True, null=True, verbose_name="result")),
                ("retention", models.DurationField(verbose_name="kept for")),
                ("enqueued_at", models.DateTimeField(verbose_name="enqueued")),
                ("ended_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
                ("expires_at", models.DateTimeField(blank=True, null=True, verbose_name="kept until")),
            ],
            options={
                "verbose_name": "workflow",
                "verbose_name_plural": "workflows",
                "permissions": (("cancel_workflow", "Can cancel workflows"),),
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="dwq_workflow_expires",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WorkflowMember",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False, verbose_name="id")),
                ("position", models.PositiveIntegerField(verbose_name="position")),
                ("parent", models.PositiveIntegerField(blank=True, null=True, verbose_name="position of the parent")),
                ("last", models.PositiveIntegerField(verbose_name="last position inside")),
                (
                    "kind",
                    models.CharField(
                        choices=[("task", "Task"), ("chain", "Chain"), ("group", "Group")],
                        default="task",
                        max_length=5,
                        verbose_name="kind",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("active", "Active"),
                            ("done", "Done"),
                            ("dead", "Dead"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="waiting",
                        max_length=9,
                        verbose_name="state",
                    ),
                ),
                ("task", models.CharField(blank=True, default="", max_length=300, verbose_name="task")),
                ("plan", models.TextField(blank=True, null=True, verbose_name="plan")),
                ("result", models.TextField(blank=True, null=True, verbose_name="result")),
                ("done_at", models.DateTimeField(blank=True, null=True, verbose_name="done")),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="members",
                        to="django_workqueue.workflow",
                        verbose_name="workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "member of a workflow",
                "verbose_name_plural": "members of workflows",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("done_at__isnull", True)),
                        fields=["workflow", "parent"],
                        name="dwq_member_open",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("workflow", "position"), name="dwq_member_position")],
            },
        ),
    ]

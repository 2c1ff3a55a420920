"""The life of a job, one verb a file: enqueue, claim, run, settle, reap; and operate, what people do."""

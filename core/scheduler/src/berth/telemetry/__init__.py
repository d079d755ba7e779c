"""Floor 5: traces, metrics and logs, all made from cycle records.

How the scheduler process wires it::

    configure_logs(verbosity=2, log_format="text")
    tracing = Tracing.from_environment(trace_file=None)   # OTEL_*, BERTH_TRACE_FILE
    metrics = SchedulerMetrics()                          # a registry of its own
    metrics.watch_tracing(tracing)
    on_record = fan_out(tracing.on_record, metrics.on_record, attempts.on_record)
    scheduler = Scheduler(..., metrics=metrics, on_record=on_record)
    metrics.watch_queue(scheduler.queue.pods_by_queue)        # read when metrics are collected
    metrics.watch_cache(scheduler.cache)
    host = PluginHost(..., sampled=tracing.sampled)       # the flag in the metadata's `traceparent`
    endpoints = Endpoints(metrics.text, metrics.reset, ...) # shown by serving/endpoints.py
    ...
    tracing.close()                                       # at the end: exports what is waiting
"""

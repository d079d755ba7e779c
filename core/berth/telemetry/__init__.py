"""Floor 5: traces, metrics and logs, all made from cycle records.

How the scheduler process wires it::

    configure_logs(verbosity=2, log_format="text")
    tracing = Tracing.from_environment(trace_file=None)   # OTEL_*, BERTH_TRACE_FILE
    metrics = SchedulerMetrics()                          # its own registry; is the queue's QueueMetrics
    metrics.watch_queue(queue.sizes)                      # read when metrics are collected
    metrics.watch_cache(cache_sizes)
    metrics.watch_tracing(tracing)
    schedule_one = ScheduleOne(..., on_record=fan_out(tracing.on_record, metrics.on_record))
    host = PluginHost(..., sampled=tracing.sampled)       # the flag in the metadata's `traceparent`
    ...
    tracing.close()                                       # at the end: exports what is waiting
"""

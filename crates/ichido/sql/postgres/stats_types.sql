-- What came in the last hour, by endpoint and type.
SELECT t.endpoint, t.event_type, t.count FROM ichido.stats_types() t

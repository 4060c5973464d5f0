// Real processes, a private PostgreSQL, temporary directories: shared with the benchmarks.
@_exported import FerryLaboratory

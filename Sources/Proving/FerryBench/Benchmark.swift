/// One measurement, with everything started by itself.
struct Benchmark: Sendable {
  /// As it is named on the command line.
  let name: String
  /// One line, a sentence with a full stop.
  let summary: String
  /// Runs it; may take minutes.
  let run: @Sendable (BenchmarkContext) async throws -> [Measurement]

  /// In the order in which they run.
  static let all: [Benchmark] = [
    .ingest, .smallPackets, .pull, .apply, .firstPull, .memory, .capture, .idleSync, .records,
    .liveQuery, .live, .listeners,
    .retention, .storage, .files, .fileStore, .missions, .mirrors, .mirrorGroups,
    .mirrorPrograms, .mirrorAdoption,
  ]
}

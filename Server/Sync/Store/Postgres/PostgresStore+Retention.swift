import FerryPostgres
import FerryProtocol

extension PostgresStore {
  package func setRetention(
    _ retention: Retention, of space: Int64, by mark: AuditMark?
  ) async throws(StoreError) {
    try await run { connection in
      var parameters: PostgresParameters = [.int8(space)]
      parameters.append(retention.milliseconds)
      let save = PostgresStatement(
        "retention_save", "UPDATE spaces SET retention = $2 WHERE id = $1")
      try connection.transaction { connection in
        _ = try connection.pipeline { pipeline in
          pipeline.add(save, parameters)
          PostgresAudit.append(
            mark, .retentionSet, of: space, retention.detail, to: &pipeline)
          pipeline.commit()
        }
      }
    }
  }

  package func raiseRetentionHorizon(
    of space: Int64, _ request: HorizonRequest
  ) async throws(StoreError) -> RaisedHorizon {
    try await run { try PostgresPruning(space: space).raiseRetentionHorizon(request, on: $0) }
  }

  package func prune(
    _ slice: PruneSlice, of space: Int64
  ) async throws(StoreError) -> PruneStep {
    try await run { try PostgresPruning(space: space).prune(slice, on: $0) }
  }

  package func reclaim() async throws(StoreError) -> ReclaimStep {
    try await run { try PostgresReclaiming.run(on: $0) }
  }
}

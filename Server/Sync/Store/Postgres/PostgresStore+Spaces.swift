import FerryPostgres
import FerryProtocol

/// Spaces: made and looked up.
extension PostgresStore {
  private static let summaryColumns = "id, name, epoch, head, retention_horizon, retention"

  private static let insert = PostgresStatement(
    "space_create",
    """
    INSERT INTO spaces(name, epoch, retention) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
    RETURNING id
    """)

  /// Makes a space within the transaction under way, unless it is there.
  static func insertSpace(
    _ name: SpaceName, epoch: Epoch, by mark: AuditMark?, on connection: PostgresConnection
  ) throws {
    var parameters: PostgresParameters = [
      .text(name.value), .int8(Int64(bitPattern: epoch.value)),
    ]
    parameters.append(Retention.standard.milliseconds)
    guard try connection.query(insert, parameters).first != nil, let mark else { return }
    try connection.append(mark.entry(.spaceCreated, space: name))
  }

  package func createSpace(
    _ name: SpaceName, by mark: AuditMark?
  ) async throws(StoreError) -> SpaceSummary {
    let epoch = makeEpoch()
    return try await run { connection in
      if mark == nil {
        try Self.insertSpace(name, epoch: epoch, by: nil, on: connection)
      } else {
        try connection.transaction { connection in
          try Self.insertSpace(name, epoch: epoch, by: mark, on: connection)
          _ = try connection.pipeline { $0.commit() }
        }
      }
      guard let space = try Self.space(name, connection) else {
        throw StoreError.failed("space \(name) was not made")
      }
      return space
    }
  }

  package func createSpace(
    _ name: SpaceName, by mark: AuditMark, quota: Int64
  ) async throws(StoreError) -> SpaceSummary? {
    let epoch = Int64(bitPattern: makeEpoch().value)
    return try await run { connection in
      var parameters: PostgresParameters = [.text(name.value), .int8(epoch)]
      parameters.append(Retention.standard.milliseconds)
      parameters.append(.text(mark.principal.id))
      parameters.append(.int8(quota))
      let own = PostgresStatement(
        "space_create_own",
        """
        INSERT INTO spaces(name, epoch, retention, creator)
        SELECT $1::text, $2::bigint, $3::bigint, $4::text
        WHERE (SELECT count(*) FROM spaces WHERE creator = $4) < $5::bigint
        ON CONFLICT DO NOTHING RETURNING 1
        """)
      try connection.transaction { connection in
        if try connection.query(own, parameters).first != nil {
          try connection.append(mark.entry(.spaceCreated, space: name))
        }
        _ = try connection.pipeline { $0.commit() }
      }
      return try Self.space(name, connection)
    }
  }

  package func space(named name: SpaceName) async throws(StoreError) -> SpaceSummary? {
    try await run(in: .authentication) { try Self.space(name, $0) }
  }

  package func spaces() async throws(StoreError) -> [SpaceSummary] {
    try await run { connection in
      try connection.query(
        PostgresStatement("spaces", "SELECT \(Self.summaryColumns) FROM spaces ORDER BY name")
      ).compactMap { try SpaceSummary($0) }
    }
  }

  private static func space(
    _ name: SpaceName, _ connection: PostgresConnection
  ) throws -> SpaceSummary? {
    try connection.query(
      PostgresStatement("space", "SELECT \(Self.summaryColumns) FROM spaces WHERE name = $1"),
      [.text(name.value)]
    ).first.flatMap { try SpaceSummary($0) }
  }
}

extension SpaceSummary {
  fileprivate init?(_ row: PostgresRow) throws {
    guard let name = SpaceName(try row.text(1)) else { return nil }
    self.init(
      id: try row.int8(0), name: name,
      epoch: Epoch(UInt64(bitPattern: try row.int8(2))), head: try row.int8(3),
      retentionHorizon: try row.int8(4), retention: Retention(milliseconds: try row.ifPresent(5)))
  }
}

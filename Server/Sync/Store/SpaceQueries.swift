import FerryProtocol

// Spaces in both stores: made, looked up, and what they keep and use.
extension PlainStore {
  package func createSpace(
    _ name: SpaceName, by mark: AuditMark?
  ) async throws(StoreError) -> SpaceSummary {
    let epoch = makeEpoch()
    return try await plain(.writing) { try $0.createSpace(name, epoch: epoch, by: mark) }
  }

  package func createSpace(
    _ name: SpaceName, by mark: AuditMark, quota: Int64
  ) async throws(StoreError) -> SpaceSummary? {
    let epoch = makeEpoch()
    return try await plain(.writing) { connection in
      try connection.together {
        let made = try connection.run(
          SpaceQueries.createOwn,
          SpaceQueries.values(name, epoch) + [.text(mark.principal.id), .integer(quota)])
        if made > 0 { try connection.append(mark.entry(.spaceCreated, space: name)) }
        return try connection.space(named: name)
      }
    }
  }

  package func space(named name: SpaceName) async throws(StoreError) -> SpaceSummary? {
    try await plain(.authenticating) { try $0.space(named: name) }
  }

  package func spaces() async throws(StoreError) -> [SpaceSummary] {
    try await plain(.reading) { connection in
      try connection.rows(SpaceQueries.all, []) { try SpaceSummary($0) }.compactMap { $0 }
    }
  }

  package func setRetention(
    _ retention: Retention, of space: Int64, by mark: AuditMark?
  ) async throws(StoreError) {
    try await plain(.writing) { connection in
      try connection.together {
        try connection.run(
          SpaceQueries.setRetention, [.integer(retention.milliseconds), .integer(space)])
        try connection.append(mark, .retentionSet, of: space, retention.detail)
      }
    }
  }

  package func usage(
    in space: Int64
  ) async throws(StoreError) -> [(principal: String, usage: Usage)] {
    try await plain(.reading) { connection in
      try connection.rows(SpaceQueries.usage, [.integer(space)]) { row in
        var usage = Usage()
        usage.stored = try (1...7).map { try row.integer($0) }
        return (try row.text(0), usage)
      }
    }
  }
}

extension PlainConnection {
  /// Makes a space if it is not there. Returns it in both cases.
  func createSpace(
    _ name: SpaceName, epoch: Epoch, by mark: AuditMark? = nil
  ) throws -> SpaceSummary {
    try together {
      try insertSpace(name, epoch: epoch, by: mark)
      guard let space = try space(named: name) else {
        throw StoreError.failed("space \(name) was not made")
      }
      return space
    }
  }

  /// Makes a space within the transaction under way, unless it is there.
  func insertSpace(_ name: SpaceName, epoch: Epoch, by mark: AuditMark?) throws {
    let made = try run(SpaceQueries.create, SpaceQueries.values(name, epoch))
    guard made > 0, let mark else { return }
    try append(mark.entry(.spaceCreated, space: name))
  }

  fileprivate func space(named name: SpaceName) throws -> SpaceSummary? {
    try rows(SpaceQueries.find, [.text(name.value)]) { try SpaceSummary($0) }.first ?? nil
  }
}

private enum SpaceQueries {
  private static let columns = "id, name, epoch, head, retention_horizon, retention"

  static let create = PlainStatement(
    "space_create",
    "INSERT INTO spaces(name, epoch, retention) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING")
  static let createOwn = PlainStatement(
    "space_create_own",
    """
    INSERT INTO spaces(name, epoch, retention, creator)
    SELECT CAST($1 AS text), CAST($2 AS bigint), CAST($3 AS bigint), CAST($4 AS text)
    WHERE (SELECT count(*) FROM spaces WHERE creator = $4) < CAST($5 AS bigint)
    ON CONFLICT DO NOTHING
    """)
  static let find = PlainStatement("space", "SELECT \(columns) FROM spaces WHERE name = $1")
  static let all = PlainStatement("spaces", "SELECT \(columns) FROM spaces ORDER BY name")
  static let setRetention = PlainStatement(
    "retention_save", "UPDATE spaces SET retention = $1 WHERE id = $2")
  static let usage = PlainStatement(
    "usage_list",
    "SELECT principal, \(Usage.columns) FROM usage WHERE space = $1 ORDER BY principal")

  /// The first parameters of a new space.
  static func values(_ name: SpaceName, _ epoch: Epoch) -> [PlainValue] {
    [
      .text(name.value), .integer(Int64(bitPattern: epoch.value)),
      .integer(Retention.standard.milliseconds),
    ]
  }
}

extension SpaceSummary {
  fileprivate init?(_ row: any PlainRow) throws {
    guard let name = SpaceName(try row.text(1)) else { return nil }
    self.init(
      id: try row.integer(0), name: name, epoch: Epoch(UInt64(bitPattern: try row.integer(2))),
      head: try row.integer(3), retentionHorizon: try row.integer(4),
      retention: Retention(milliseconds: try row.optionalInteger(5)))
  }
}

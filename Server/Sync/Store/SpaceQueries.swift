import FerryProtocol

// Spaces in both stores: made, looked up, and what they keep and use.
extension SyncStore {
  /// Makes the space if it is not there. Returns it in both cases.
  package func createSpace(
    _ name: SpaceName, by mark: AuditMark? = nil
  ) async throws(StoreError) -> SpaceSummary {
    let epoch = makeEpoch()
    return try await plain(.writing) { try $0.createSpace(name, epoch: epoch, by: mark) }
  }

  /// Makes the space if it is not there. Returns it either way, and `nil` if the principal of
  /// `mark` has created as many as `quota` already.
  package func createSpace(
    _ name: SpaceName, by mark: AuditMark, quota: Int64
  ) async throws(StoreError) -> SpaceSummary? {
    let epoch = makeEpoch()
    return try await plain(.writing) { connection in
      try connection.together {
        try connection.addSpace(name, epoch: epoch, by: mark, quota: quota)
        return try connection.space(named: name)
      }
    }
  }

  /// Returns a space; `nil` if there is no such space.
  package func space(named name: SpaceName) async throws(StoreError) -> SpaceSummary? {
    try await plain(.authenticating) { try $0.space(named: name) }
  }

  /// Returns all spaces, by name.
  package func spaces() async throws(StoreError) -> [SpaceSummary] {
    try await plain(.reading) { connection in
      try connection.rows(SpaceQueries.all, []) { try SpaceSummary($0) }.compactMap { $0 }
    }
  }

  /// Sets the retention of the space's history from now on. Deleted history stays deleted.
  package func setRetention(
    _ retention: Retention, of space: Int64, by mark: AuditMark? = nil
  ) async throws(StoreError) {
    try await plain(.writing) { connection in
      try connection.together {
        try connection.run(
          SpaceQueries.setRetention, [.integer(retention.milliseconds), .integer(space)])
        try connection.append(mark, .retentionSet, of: space, retention.detail)
      }
    }
  }

  /// Returns the use of a space, by principal; the first row is all of them together, and has no
  /// name.
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

  /// Returns the number of a device's buffered packets, and their bytes.
  package func buffered(
    in space: Int64, of device: DeviceID
  ) async throws(StoreError) -> (packets: Int, bytes: Int) {
    try await plain(.reading) { connection in
      let found = try connection.rows(
        SpaceQueries.buffered, [.integer(space), .uuid(device.value)]
      ) { (packets: Int(try $0.integer(0)), bytes: Int(try $0.integer(1))) }
      return found.first ?? (0, 0)
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
        // Citus shows the name a moment before the space.
        throw StoreError.busy("another server creates space \(name) at this moment")
      }
      return space
    }
  }

  /// Makes a space within the transaction under way, unless it is there, or the principal of `mark`
  /// has created as many as `quota` already. Returns `true` if it was made now.
  @discardableResult
  func addSpace(
    _ name: SpaceName, epoch: Epoch, by mark: AuditMark, quota: Int64
  ) throws -> Bool {
    let id = try rows(
      SpaceQueries.addOwnName,
      [.text(name.value), .text(mark.principal.account.id), .integer(quota)]
    ) { try $0.integer(0) }.first
    if let id { try insertSpace(id, name, epoch: epoch, by: mark) }
    return id != nil
  }

  /// Makes a space within the transaction under way, unless it is there.
  func insertSpace(_ name: SpaceName, epoch: Epoch, by mark: AuditMark?) throws {
    let id = try rows(SpaceQueries.addName, [.text(name.value)]) { try $0.integer(0) }.first
    if let id { try insertSpace(id, name, epoch: epoch, by: mark) }
  }

  /// Makes the space of a new name.
  fileprivate func insertSpace(
    _ id: Int64, _ name: SpaceName, epoch: Epoch, by mark: AuditMark?
  ) throws {
    try run(
      SpaceQueries.create,
      [
        .integer(id), .integer(Int64(bitPattern: epoch.value)),
        .integer(Retention.standard.milliseconds),
      ])
    try append(mark?.entry(.spaceCreated, space: name))
  }

  func space(named name: SpaceName) throws -> SpaceSummary? {
    guard let id = try spaceNumber(named: name) else { return nil }
    return try rows(SpaceQueries.find, [.integer(id)]) { try SpaceSummary($0) }.first ?? nil
  }

  /// Returns the number of a space, by which all statements find its rows. It never changes.
  func spaceNumber(named name: SpaceName) throws -> Int64? {
    try rows(SpaceQueries.number, [.text(name.value)]) { try $0.integer(0) }.first
  }
}

private enum SpaceQueries {
  private static let columns = """
    s.id, n.name, s.epoch, s.head, s.retention_horizon, s.retention
    FROM space_names AS n JOIN spaces AS s ON s.id = n.id
    """

  static let addName = PlainStatement(
    "space_name_add",
    "INSERT INTO space_names(name) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id")
  static let addOwnName = PlainStatement(
    "space_name_add_own",
    """
    INSERT INTO space_names(name, creator) SELECT CAST($1 AS text), CAST($2 AS text)
    WHERE (SELECT count(*) FROM space_names WHERE creator = $2) < CAST($3 AS bigint)
    ON CONFLICT DO NOTHING RETURNING id
    """)
  static let create = PlainStatement(
    "space_create", "INSERT INTO spaces(id, epoch, retention) VALUES ($1, $2, $3)")
  static let number = PlainStatement(
    "space_number", "SELECT id FROM space_names WHERE name = $1")
  static let find = PlainStatement("space", "SELECT \(columns) WHERE s.id = $1")
  static let all = PlainStatement("spaces", "SELECT \(columns) ORDER BY n.name")
  static let setRetention = PlainStatement(
    "retention_save", "UPDATE spaces SET retention = $1 WHERE id = $2")
  static let usage = PlainStatement(
    "usage_list",
    "SELECT principal, \(Usage.columns) FROM usage WHERE space = $1 ORDER BY principal")
  static let buffered = PlainStatement(
    "buffered_count",
    """
    SELECT count(*), CAST(coalesce(sum(bytes), 0) AS bigint) FROM buffered
    WHERE space = $1 AND device = $2
    """)
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

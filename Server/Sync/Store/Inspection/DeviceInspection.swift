import FerryProtocol

/// The view of devices and rejections for administrators, in both stores.
package struct DeviceInspection: Sendable {
  private let store: any SyncStore

  package init(_ store: any SyncStore) { self.store = store }

  /// Returns devices by identifier: those that wrote, and those that only read.
  package func devices(
    in space: Int64, after device: DeviceID?, limit: Int
  ) async throws(StoreError) -> [DeviceOverview] {
    let start = device ?? .server
    return try await store.plain(.reading) { connection in
      let writers = try connection.rows(
        Self.writers,
        [.integer(space), .uuid(start.value), .integer(Int64(limit))]
      ) { try DeviceOverview(writer: $0) }.compactMap { $0 }
      let seen = try connection.rows(
        Self.seen,
        [.integer(space), .text(start.description), .integer(Int64(limit))]
      ) { try DeviceOverview(seen: $0) }.compactMap { $0 }
      return DeviceOverview.merged(writers, seen, limit: limit)
    }
  }

  /// Returns refused packets and operations, the last first.
  package func rejections(
    in space: Int64, before place: RejectionPlace?, limit: Int
  ) async throws(StoreError) -> [Rejection] {
    let place = place ?? RejectionPlace(lastAt: .max, subject: "")
    return try await store.plain(.reading) { connection in
      try connection.rows(
        Self.rejections,
        [
          .integer(space), .integer(place.lastAt), .text(place.subject),
          .integer(Int64(limit)),
        ]
      ) { try Rejection($0) }
    }
  }
}

extension DeviceInspection {
  fileprivate static let writers = PlainStatement(
    "inspect_writers",
    """
    SELECT d.device, d.principal, d.name, d.seen_at, d.operations,
      (SELECT count(*) FROM buffered AS b WHERE b.space = $1 AND b.device = d.device),
      (SELECT CAST(coalesce(sum(b.bytes), 0) AS bigint) FROM buffered AS b
        WHERE b.space = $1 AND b.device = d.device)
    FROM devices AS d WHERE d.space = $1 AND d.device > $2 ORDER BY d.device LIMIT $3
    """)

  fileprivate static let seen = PlainStatement(
    "inspect_seen",
    """
    SELECT device, principal, seen_at, reached, client FROM device_sightings
    WHERE space = $1 AND device > $2 ORDER BY device LIMIT $3
    """)

  fileprivate static let rejections = PlainStatement(
    "inspect_rejections",
    """
    SELECT subject, first_at, last_at, times, code, detail, principal, device, tbl, record
    FROM rejections
    WHERE space = $1 AND last_at <= $2 AND (last_at < $2 OR subject < $3)
    ORDER BY last_at DESC, subject DESC LIMIT $4
    """)
}

extension DeviceOverview {
  fileprivate init?(writer row: any PlainRow) throws {
    guard let id = try row.uniqueID(0) else { return nil }
    self.init(
      device: DeviceID(id), principal: try row.text(1),
      name: DeviceName(stored: try row.optionalText(2)), seenAt: try row.integer(3),
      operations: try row.integer(4), bufferedPackets: try row.integer(5),
      bufferedBytes: try row.integer(6))
  }

  fileprivate init?(seen row: any PlainRow) throws {
    guard let device = DeviceID(try row.text(0)) else { return nil }
    self.init(
      device: device, principal: try row.text(1), seenAt: try row.integer(2),
      reached: try row.optionalInteger(3), client: try row.optionalText(4))
  }

  /// Joins both lists, which are in the order of the devices.
  static func merged(
    _ writers: [DeviceOverview], _ seen: [DeviceOverview], limit: Int
  ) -> [DeviceOverview] {
    var devices = Dictionary(seen.map { ($0.device, $0) }) { first, _ in first }
    for writer in writers {
      guard let sighting = devices[writer.device] else {
        devices[writer.device] = writer
        continue
      }
      var both = writer
      both.seenAt = max(writer.seenAt, sighting.seenAt)
      (both.reached, both.client) = (sighting.reached, sighting.client)
      devices[writer.device] = both
    }
    // A device after the end of a shortened list may be in the other list, further on.
    return Array(devices.values.sorted { $0.device < $1.device }.prefix(limit))
  }
}

extension Rejection {
  fileprivate init(_ row: any PlainRow) throws {
    let table = try row.optionalText(8)
    let record = try row.optionalText(9)
    self.init(
      subject: try row.text(0), firstAt: try row.integer(1), lastAt: try row.integer(2),
      times: try row.integer(3), code: try row.text(4), detail: try row.text(5),
      principal: try row.text(6), device: try row.optionalText(7).flatMap { DeviceID($0) },
      key: table.map { RecordKey(table: $0, record: record ?? "") })
  }
}

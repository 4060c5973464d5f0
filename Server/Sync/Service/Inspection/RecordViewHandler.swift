import FerryHTTPServer
import FerryProtocol

/// Shows records, their history and conflicts to administrators (SPEC.md §32).
struct RecordViewHandler: Sendable {
  let core: ServiceCore

  func tables(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = InspectionQuery(values: context.request.query)
    let (limit, after) = (try query.limit(), query.values["after"].map { Name($0) })
    let space = try await core.find(name)
    let tables = try await core.ask { (store) async throws(StoreError) in
      try await SpaceInspection(store).tableNames(in: space.id, after: after, limit: limit)
    }
    var json = JSONWriter(capacity: 256 + tables.count * 32)
    json.object { json in
      json.key("tables")
      json.array(of: tables)
      json.member("next", tables.count < limit ? nil : tables.last)
    }
    return .json(json.finish())
  }

  func records(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = InspectionQuery(values: context.request.query)
    let table = try query.name("table", "the name of a table")
    let (limit, after) = (try query.limit(), query.values["after"].map { Name($0) })
    let space = try await core.find(name)
    let records = try await core.ask { (store) async throws(StoreError) in
      try await RecordInspection(store).listedRecords(
        of: table, in: space.id, after: after, limit: limit,
        characters: InspectionQuery.characters)
    }
    var json = JSONWriter(capacity: 1_024 + records.count * 400)
    json.object { json in
      json.member("table", table)
      json.key("records")
      json.array(of: records) { $1.write(to: &$0, valueBytes: 1_000) }
      // The list may end early because of the length, so only an empty answer ends it.
      json.member("next", records.last?.record)
    }
    return .json(json.finish())
  }

  /// Returns a record with a part of the record's history.
  func history(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = InspectionQuery(values: context.request.query)
    let key = RecordKey(
      table: try query.name("table", "the name of a table"),
      record: try query.name("record", "the identifier of a record"))
    let (limit, before) = (try query.limit(), try query.place("before"))
    let space = try await core.current(name)
    let record = try await core.ask { (store) async throws(StoreError) in
      try await RecordInspection(store).listedRecord(key, in: space.id)
    }
    // The newest operation on a record has the record's place.
    let top = min(before ?? record?.sequence ?? space.head, space.head)
    let stretch = HistoryStretch(top: top, horizon: space.retentionHorizon)
    var part = HistoryPart(entries: [], isCut: false)
    if let places = stretch.places {
      part = try await core.ask { (store) async throws(StoreError) in
        try await RecordInspection(store).history(
          of: key, in: space.id, within: places, limit: limit,
          characters: InspectionQuery.characters)
      }
    }
    let devices = part.entries.map(\.device) + (record?.state.devices ?? [])
    let names = try await core.identities(of: devices, in: space.id)
    var json = JSONWriter(capacity: 4_096)
    json.object { json in
      json.member("table", key.table)
      json.key("record")
      if let record { record.write(to: &json, valueBytes: .max) } else { json.raw("null") }
      json.key("operations")
      json.array(of: part.entries)
      json.key("devices")
      json.array(of: names.values.sorted { $0.device < $1.device })
      json.member("horizon", digits: space.retentionHorizon)
      json.member("next", stretch.next(after: part).map { String($0) })
    }
    return .json(json.finish())
  }

  func conflicts(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = InspectionQuery(values: context.request.query)
    let (limit, before) = (try query.limit(), try query.conflictPlace())
    let space = try await core.current(name)
    let found = try await core.ask { (store) async throws(StoreError) in
      try await RecordInspection(store).conflicts(
        in: space.id, before: before, limit: limit, characters: InspectionQuery.characters)
    }
    let devices = found.flatMap { entry in
      [entry.device] + entry.notice.conflicts.map(\.winner.device)
    }
    let names = try await core.identities(of: devices, in: space.id)
    var json = JSONWriter(capacity: 1_024 + found.count * 400)
    json.object { json in
      json.key("conflicts")
      json.array(of: found) { json, entry in
        json.object { json in
          json.member("device", entry.device.value)
          json.key("notice")
          json.notice(entry.notice)
        }
      }
      json.key("devices")
      json.array(of: names.values.sorted { $0.device < $1.device })
      json.member("horizon", digits: space.retentionHorizon)
      // The list may end early because of the length, so only an empty answer ends it.
      json.member("next", found.last.map { "\($0.place.sequence)/\($0.place.device)" })
    }
    return .json(json.finish())
  }
}

/// The part of a space's history examined by one request; pure.
struct HistoryStretch: Equatable {
  /// The places to look at; `nil` if the history has none of them any more.
  let places: ClosedRange<SequenceNumber>?
  private let first: SequenceNumber

  /// - Parameters:
  ///   - top: The last place to look at.
  ///   - horizon: Operations before it are gone.
  init(top: SequenceNumber, horizon: SequenceNumber, length: Int64 = InspectionQuery.stretch) {
    first = max(1, horizon)
    places = top < first ? nil : max(first, top - length + 1)...top
  }

  /// Returns the place at which the next part begins; `nil` if there is none.
  func next(after part: HistoryPart) -> SequenceNumber? {
    guard let places else { return nil }
    let next =
      (part.isCut ? part.entries.last?.sequence ?? places.lowerBound : places.lowerBound) - 1
    return next < first ? nil : next
  }
}

extension RecordState {
  /// The devices that wrote the record's present values.
  fileprivate var devices: [DeviceID] {
    [inserted?.stamp.device, deleted?.stamp.device].compactMap { $0 } + columns.map(\.stamp.device)
  }
}

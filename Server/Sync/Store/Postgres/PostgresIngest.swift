import FerryPostgres
import FerryProtocol

/// Applies one batch of packets in one transaction and two round trips: lock and load; then write
/// and commit. If a quick decision violates a unique key, a second transaction decides it
/// thoroughly (``IngestLookUps``).
struct PostgresIngest {
  let space: Int64
  let limits: Limits
  let quotas: Quotas
  let now: Int64
  let schemas: SchemaCache
  let timelines: OwnTimelines
  let mistaken: MistakenDevices
  let room: IngestRoom

  private func loader(on connection: PostgresConnection) -> IngestLoader {
    IngestLoader(
      connection: connection, space: space, now: now, limits: limits, quotas: quotas, room: room,
      schemas: schemas, timelines: timelines)
  }

  /// Applies the packets, unless the matches of their batch operations are not known yet.
  func run(
    _ packets: [IncomingPacket], _ matches: BatchMatches, on connection: PostgresConnection
  ) throws -> IngestAttempt {
    // A failed transaction takes it from the connection.
    let observer = connection.observer
    do {
      do {
        let isThorough = mistaken.concern(packets, in: space)
        return try apply(packets, matches, isThorough: isThorough, observer, on: connection)
      } catch let error as PostgresError where error.sqlState == "23505" {
        // A unique key: an operation or a record exists that counted as new.
        mistaken.record(packets, in: space)
        return try apply(packets, matches, isThorough: true, observer, on: connection)
      }
    } catch let wanted as BatchesToMatch {
      return .needsMatches(wanted)
    }
  }

  private func apply(
    _ packets: [IncomingPacket], _ matches: BatchMatches, isThorough: Bool,
    _ observer: PostgresObserver?, on connection: PostgresConnection
  ) throws -> IngestAttempt {
    let (before, effects) = try IngestRestart.repeated { start in
      connection.observer = observer
      return try connection.transaction { connection in
        let lookUps = IngestLookUps(packets.map(\.packet), isThorough: isThorough)
        let context = try loader(on: connection).context(for: packets, lookUps)
        let effects = try decide(
          packets, matches, lookUps, from: start, in: context, on: connection)
        try save(effects, on: connection)
        return (context.space.head, effects)
      }
    }
    timelines.update(effects.space, of: space)
    return .done(before: before, effects.batch)
  }

  /// Decides with a context in which `lookUps` is loaded; if this is not enough, thoroughly.
  private func decide(
    _ packets: [IncomingPacket], _ matches: BatchMatches, _ lookUps: IngestLookUps,
    from start: IngestRestart, in loaded: IngestContext, on connection: PostgresConnection
  ) throws -> IngestEffects {
    // A quick decision must not write anything before it is known to suffice.
    if lookUps.isThorough || !loaded.isSliced,
      lookUps.suffice(for: packets.map(\.packet), in: loaded)
    {
      let effects = try decide(packets, matches, from: start, in: loaded, on: connection)
      if lookUps.suffice(for: effects) { return effects }
    }
    var context = loaded
    try loader(on: connection).load(
      IngestLookUps(packets.map(\.packet), isThorough: true), for: packets.count, into: &context)
    return try decide(packets, matches, from: start, in: context, on: connection)
  }

  private func decide(
    _ packets: [IncomingPacket], _ matches: BatchMatches, from start: IngestRestart,
    in loaded: IngestContext, on connection: PostgresConnection
  ) throws -> IngestEffects {
    var context = loaded
    let slices = PostgresSlices(space: space, now: now, connection: connection)
    let loader = loader(on: connection)
    return try Ingest.decide(packets, in: &context, from: start, slices: slices) {
      need, context in
      try loader.load(need, matches, for: packets.count, into: &context)
    }
  }

  private func save(_ effects: IngestEffects, on connection: PostgresConnection) throws {
    let writes = PostgresIngestWrites(space: space, now: now)
    _ = try connection.pipeline { pipeline in
      if !effects.isEmpty { writes.add(effects, to: &pipeline) }
      pipeline.commit()
    }
  }
}

/// States loaded and written in slices, within a transaction.
private struct PostgresSlices: IngestSlices {
  let space: Int64
  let now: Int64
  let connection: PostgresConnection

  func load(_ keys: [RecordKey]) throws -> [RecordKey: (state: RecordState, bytes: Int)] {
    var found: [RecordKey: (state: RecordState, bytes: Int)] = [:]
    try connection.forEachState(of: keys, in: space) { key, bytes in
      found[key] = (try RecordState(stored: bytes, limits: .stored), bytes.count)
    }
    return found
  }

  func save(_ slice: IngestEffects) throws {
    // One statement after the other: the history and the records are about as large.
    let writes = PostgresIngestWrites(space: space, now: now)
    _ = try connection.pipeline { writes.add(history: slice, to: &$0) }
    _ = try connection.pipeline { writes.add(records: slice, to: &$0) }
  }
}

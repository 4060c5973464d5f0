import FerryProtocol

/// A store's part in a batch whose records do not fit into memory together. It loads the states and
/// writes the rows of one slice after the other, in the batch's transaction.
package protocol IngestSlices {
  /// Returns the states of records as seen by the transaction, with their stored bytes. A missing
  /// record is absent.
  func load(_ keys: [RecordKey]) throws -> [RecordKey: (state: RecordState, bytes: Int)]

  /// Writes the operations, records and notices of a slice.
  func save(_ slice: IngestEffects) throws
}

/// The states of a sliced batch in memory.
struct WorkingStates {
  fileprivate let slices: any IngestSlices
  private let room: Int
  /// States loaded ahead of their operations.
  fileprivate var loaded: [RecordKey: (state: RecordState, bytes: Int)] = [:]
  /// The places of touched records with a state in memory.
  fileprivate var places: [Int] = []
  /// Bytes of all of them, as they were stored.
  fileprivate var bytes = 0
  /// The records of the following operations, the next one last.
  private var expected: [RecordKey] = []
  /// True if a slice is written already.
  fileprivate(set) var hasSaved = false

  init(_ slices: any IngestSlices, room: Int) {
    (self.slices, self.room) = (slices, room)
  }

  /// Sets the records of the following operations.
  mutating func expect(_ keys: some Sequence<RecordKey>) { expected = keys.reversed() }

  /// Adds the place of a touched record.
  mutating func add(_ place: Int) { places.append(place) }

  /// True if another state needs the memory of the states loaded before.
  fileprivate func lacksRoom(for size: Int) -> Bool { bytes > 0 && bytes + size > room }

  /// Loads the state of a record, and of following ones if there is room.
  ///
  /// - Parameter size: Returns the bytes of a state that is not in memory; `nil` for a record
  ///   without one.
  fileprivate mutating func load(_ key: RecordKey, size: (RecordKey) -> Int?) throws {
    var (keys, sum) = ([key], bytes + (size(key) ?? 0))
    var wanted: Set = [key]
    if let place = expected.lastIndex(of: key) { expected.removeSubrange(place...) }
    for next in expected.reversed() where loaded[next] == nil && !wanted.contains(next) {
      guard let more = size(next) else { continue }
      guard sum + more <= room else { break }
      sum += more
      keys.append(next)
      wanted.insert(next)
    }
    for (key, found) in try slices.load(keys) {
      loaded[key] = found
      bytes += found.bytes
    }
  }
}

// States that leave the memory and return.
extension Ingest {
  /// Returns the state of a record as it was before this batch; `nil` if it does not exist.
  mutating func existing(_ key: RecordKey) throws -> RecordState? {
    guard working != nil else { return context.records[key] }
    guard context.recordBytes[key] != nil else { return nil }
    return try fetch(key)
  }

  /// Restores the state of a touched record into memory, if missing.
  mutating func restore(_ index: Int) throws {
    guard records[index].evicted != nil else { return }
    let state = try fetch(records[index].key) ?? RecordState()
    records[index].state = state
    records[index].evicted = nil
    records[index].isChanged = false
    working?.add(index)
  }

  private mutating func fetch(_ key: RecordKey) throws -> RecordState? {
    if working?.loaded[key] == nil {
      if working?.lacksRoom(for: size(of: key) ?? 0) == true { try evict() }
      let (records, places, stored) = (records, recordIndex, context.recordBytes)
      try working?.load(key) { key in
        guard let index = places[key], index < records.count else { return stored[key] }
        return records[index].evicted?.bytes
      }
    }
    return working?.loaded.removeValue(forKey: key)?.state
  }

  /// Returns the bytes of a record's state that is not in memory.
  private func size(of key: RecordKey) -> Int? {
    // The place of a touched record is known before the state.
    guard let index = recordIndex[key], index < records.count else {
      return context.recordBytes[key]
    }
    return records[index].evicted?.bytes
  }

  /// Writes the rows of all states in memory, and of the operations so far, and forgets them.
  private mutating func evict() throws {
    guard var working else { return }
    self.working = nil
    var slice = IngestEffects(space: effects.space)
    for index in working.places {
      let measure = measure(index)
      if records[index].hasRow {
        slice.records.append(IngestEffects.RecordRow(records[index]))
        records[index].isNew = false
      }
      claims.record(records[index].state, of: records[index].key)
      records[index].evicted = measure
      records[index].state = RecordState()
      records[index].stored = nil
    }
    countWritten()
    swap(&slice.operations, &effects.operations)
    swap(&slice.notices, &effects.notices)
    counted = (0, 0)
    (working.loaded, working.places, working.bytes) = ([:], [], 0)
    try working.slices.save(slice)
    working.hasSaved = true
    self.working = working
  }
}

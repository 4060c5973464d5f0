import FerryProtocol
import FerrySyncServer

// The views of administrators.
extension StandStillStore {
  func overviews(
    after name: String, limit: Int, now: Int64
  ) async throws(StoreError) -> [SpaceOverview] {
    try await still { store async throws(StoreError) in
      try await store.overviews(after: name, limit: limit, now: now)
    }
  }

  func overview(of name: SpaceName, now: Int64) async throws(StoreError) -> SpaceOverview? {
    try await still { store async throws(StoreError) in
      try await store.overview(of: name, now: now)
    }
  }

  func devices(
    in space: Int64, after device: DeviceID?, limit: Int
  ) async throws(StoreError) -> [DeviceOverview] {
    try await still { store async throws(StoreError) in
      try await store.devices(in: space, after: device, limit: limit)
    }
  }

  func rejections(
    in space: Int64, before place: RejectionPlace?, limit: Int
  ) async throws(StoreError) -> [Rejection] {
    try await still { store async throws(StoreError) in
      try await store.rejections(in: space, before: place, limit: limit)
    }
  }

  func activity(
    in space: Int64, by unit: ActivityUnit, since moment: Int64
  ) async throws(StoreError) -> [ActivityCount] {
    try await still { store async throws(StoreError) in
      try await store.activity(in: space, by: unit, since: moment)
    }
  }

  func tableNames(
    in space: Int64, after table: Name?, limit: Int
  ) async throws(StoreError) -> [Name] {
    try await still { store async throws(StoreError) in
      try await store.tableNames(in: space, after: table, limit: limit)
    }
  }

  func listedRecords(
    of table: Name, in space: Int64, after record: Name?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedRecord] {
    try await still { store async throws(StoreError) in
      try await store.listedRecords(
        of: table, in: space, after: record, limit: limit, characters: characters)
    }
  }

  func listedRecord(
    _ key: RecordKey, in space: Int64
  ) async throws(StoreError) -> ListedRecord? {
    try await still { store async throws(StoreError) in
      try await store.listedRecord(key, in: space)
    }
  }

  func history(
    of key: RecordKey, in space: Int64, within stretch: ClosedRange<SequenceNumber>, limit: Int,
    characters: Int
  ) async throws(StoreError) -> HistoryPart {
    try await still { store async throws(StoreError) in
      try await store.history(
        of: key, in: space, within: stretch, limit: limit, characters: characters)
    }
  }

  func conflicts(
    in space: Int64, before place: ConflictPlace?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedConflict] {
    try await still { store async throws(StoreError) in
      try await store.conflicts(
        in: space, before: place, limit: limit, characters: characters)
    }
  }

  func identities(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [DeviceIdentity] {
    try await still { store async throws(StoreError) in
      try await store.identities(of: devices, in: space)
    }
  }

  func checkSchema(
    _ document: SpaceSchema, of space: Int64, now: Int64, consent: SchemaConsent
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    try await still { store async throws(StoreError) in
      try await store.checkSchema(document, of: space, now: now, consent: consent)
    }
  }

  func store(_ observations: Observations, now: Int64) async throws(StoreError) {
    try await still { store async throws(StoreError) in
      try await store.store(observations, now: now)
    }
  }
}

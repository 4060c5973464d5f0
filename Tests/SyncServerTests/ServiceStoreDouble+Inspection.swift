import FerryProtocol

@testable import FerrySyncServer

extension ServiceStoreDouble {
  func overviews(
    after name: String, limit: Int, now: Int64
  ) async throws(StoreError) -> [SpaceOverview] {
    let spaces = try await spaces().filter { $0.name.value > name }.prefix(limit)
    return spaces.map {
      SpaceOverview(space: $0, schemaVersion: 0, usage: Usage(), lastHour: 0)
    }
  }

  func overview(of name: SpaceName, now: Int64) async throws(StoreError) -> SpaceOverview? {
    try await overviews(after: "", limit: .max, now: now).first { $0.space.name == name }
  }

  func devices(
    in space: Int64, after device: DeviceID?, limit: Int
  ) async throws(StoreError) -> [DeviceOverview] {
    state.withLock { state in
      state.observed.flatMap(\.sightings).map {
        DeviceOverview(
          device: $0.device, principal: $0.principal.id, seenAt: $0.at, reached: $0.reached,
          client: $0.client)
      }
    }
  }

  func rejections(
    in space: Int64, before place: RejectionPlace?, limit: Int
  ) async throws(StoreError) -> [Rejection] {
    state.withLock { $0.observed.flatMap(\.rejections).map(\.rejection) }
  }

  func activity(
    in space: Int64, by unit: ActivityUnit, since moment: Int64
  ) async throws(StoreError) -> [ActivityCount] {
    state.withLock { $0.observed.flatMap(\.activity).map(\.count) }
  }

  func tableNames(
    in space: Int64, after table: Name?, limit: Int
  ) async throws(StoreError) -> [Name] { ["tasks"] }

  func listedRecords(
    of table: Name, in space: Int64, after record: Name?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedRecord] {
    state.withLock { $0.listed.map { [$0] } ?? [] }
  }

  func listedRecord(
    _ key: RecordKey, in space: Int64
  ) async throws(StoreError) -> ListedRecord? { state.withLock { $0.listed } }

  func history(
    of key: RecordKey, in space: Int64, within stretch: ClosedRange<SequenceNumber>, limit: Int,
    characters: Int
  ) async throws(StoreError) -> HistoryPart { HistoryPart(entries: [], isCut: false) }

  func conflicts(
    in space: Int64, before place: ConflictPlace?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedConflict] { [] }

  func identities(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [DeviceIdentity] { [] }

  func checkSchema(
    _ document: SpaceSchema, of space: Int64, now: Int64, consent: SchemaConsent
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> { .success(document) }

  func store(_ observations: Observations, now: Int64) async throws(StoreError) {
    if !observations.isEmpty { await wait(while: \.isHoldingNotes) }
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      if !observations.isEmpty { state.observed.append(observations) }
    }
  }
}

import FerryProtocol

/// The content of a store for administrators (SPEC.md §32).
///
/// Every answer is bounded, and every list continues after a place. A query walks an index from
/// this place; none reads a table whole.
package protocol InspectionStore: Sendable {
  /// Returns spaces by name.
  ///
  /// - Parameters:
  ///   - name: The name after which the list continues; empty for the start.
  ///   - now: The wall clock, milliseconds since 1970.
  func overviews(
    after name: String, limit: Int, now: Int64
  ) async throws(StoreError) -> [SpaceOverview]

  /// Returns one space; `nil` if there is no such space.
  func overview(of name: SpaceName, now: Int64) async throws(StoreError) -> SpaceOverview?

  /// Returns devices by identifier: those that wrote, and those that only read.
  func devices(
    in space: Int64, after device: DeviceID?, limit: Int
  ) async throws(StoreError) -> [DeviceOverview]

  /// Returns refused packets and operations, the last first.
  func rejections(
    in space: Int64, before place: RejectionPlace?, limit: Int
  ) async throws(StoreError) -> [Rejection]

  /// Returns the counts of intervals from a moment on, in order. Intervals without any are absent.
  func activity(
    in space: Int64, by unit: ActivityUnit, since moment: Int64
  ) async throws(StoreError) -> [ActivityCount]

  /// Returns the names of the tables with records, in the order of their bytes.
  func tableNames(
    in space: Int64, after table: Name?, limit: Int
  ) async throws(StoreError) -> [Name]

  /// Returns records of a table, tombstones too, by identifier: first those other than UUIDs, then
  /// UUIDs, each by their bytes.
  ///
  /// - Parameter characters: The length of states at which the list ends. The first record is
  ///   always in it.
  func listedRecords(
    of table: Name, in space: Int64, after record: Name?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedRecord]

  /// Returns a record; `nil` if there is none and no tombstone.
  func listedRecord(
    _ key: RecordKey, in space: Int64
  ) async throws(StoreError) -> ListedRecord?

  /// Returns the operations on a record within a stretch of the space's history, the last first.
  ///
  /// - Parameters:
  ///   - stretch: The places to look at.
  ///   - characters: The length of data after which the list ends. The first operation is always
  ///     in it.
  func history(
    of key: RecordKey, in space: Int64, within stretch: ClosedRange<SequenceNumber>, limit: Int,
    characters: Int
  ) async throws(StoreError) -> HistoryPart

  /// Returns the conflicts in a space's remaining history, the last first.
  func conflicts(
    in space: Int64, before place: ConflictPlace?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedConflict]

  /// Returns the devices known in the space.
  func identities(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [DeviceIdentity]

  /// Decides about a schema like ``SyncStore/applySchema(_:to:now:consent:by:)``, and changes
  /// nothing. Returns the schema that would be in force.
  func checkSchema(
    _ document: SpaceSchema, of space: Int64, now: Int64, consent: SchemaConsent
  ) async throws(StoreError) -> Result<SpaceSchema, Problem>

  /// Writes observations down.
  func store(_ observations: Observations, now: Int64) async throws(StoreError)
}

/// A space with the figures for administrators.
package struct SpaceOverview: Sendable, Equatable {
  package let space: SpaceSummary
  package let schemaVersion: Int64
  /// All principals together.
  package let usage: Usage
  /// Operations applied in the last 60 minutes.
  package let lastHour: Int64
}

/// A device of a space.
package struct DeviceOverview: Sendable, Equatable {
  package let device: DeviceID
  package var principal: String
  package var name: DeviceName?
  /// The last packet, or the last request if known; milliseconds since 1970.
  package var seenAt: Int64
  /// Applied operations of the device; `nil` for a device that only read so far.
  package var operations: Int64?
  package var bufferedPackets: Int64 = 0
  package var bufferedBytes: Int64 = 0
  /// See ``DeviceSighting/reached``.
  package var reached: SequenceNumber?
  package var client: String?
}

/// A place in the list of rejections.
package struct RejectionPlace: Sendable, Equatable {
  package let lastAt: Int64
  package let subject: String

  package init(lastAt: Int64, subject: String) {
    (self.lastAt, self.subject) = (lastAt, subject)
  }
}

/// A record as the store has it.
package struct ListedRecord: Sendable, Equatable {
  package let record: Name
  package let sequence: SequenceNumber
  package let state: RecordState
}

/// An operation on a record.
package struct HistoryEntry: Sendable, Equatable {
  package let id: OperationID
  package let sequence: SequenceNumber
  package let device: DeviceID
  package let kind: OperationKind
  package let time: HybridTimestamp
  /// The newest change that the author had seen.
  package let base: SequenceNumber
  /// The columns as JSON; `nil` for a delete.
  package let data: [UInt8]?
  /// As JSON; `nil` if it was applied and nothing lost.
  package let outcome: [UInt8]?
}

/// The operations on a record in a stretch of the history.
package struct HistoryPart: Sendable, Equatable {
  /// The last first.
  package var entries: [HistoryEntry]
  /// True if the stretch has more of them than the part may hold.
  package var isCut: Bool
}

/// A place in the list of conflicts.
package struct ConflictPlace: Sendable, Equatable {
  package let sequence: SequenceNumber
  package let device: DeviceID

  package init(sequence: SequenceNumber, device: DeviceID) {
    (self.sequence, self.device) = (sequence, device)
  }
}

/// Lost values of a device, at one place in the order.
package struct ListedConflict: Sendable, Equatable {
  /// The device whose values lost.
  package let device: DeviceID
  package let notice: Notice

  package var place: ConflictPlace {
    ConflictPlace(sequence: notice.sequence, device: device)
  }
}

/// The owner and the name of a device.
package struct DeviceIdentity: Sendable, Equatable {
  package let device: DeviceID
  package let principal: String
  package let name: DeviceName?
}

import FerryProtocol

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

/// The epoch of a space's history, drawn when the space is created. A recreated space has another
/// epoch, and refuses cursors of the former one. It has sixteen hexadecimal digits on the wire.
public struct Epoch: Hashable, Sendable, CustomStringConvertible {
  /// A random number.
  public let value: UInt64

  /// Wraps the number.
  public init(_ value: UInt64) { self.value = value }

  /// Parses sixteen hexadecimal digits.
  public init?(_ text: some StringProtocol) {
    guard text.utf8.count == 16, text.utf8.allSatisfy({ hexValue($0) != nil }),
      let value = UInt64(text, radix: 16)
    else { return nil }
    self.value = value
  }

  public var description: String { HybridTimestamp(rawValue: value).description }
}

/// The server's answer for one packet.
public struct PacketReceipt: Sendable, Equatable {
  /// The result of the packet as a whole.
  public enum Status: String, Sendable {
    /// All operations are in the history now.
    case applied
    /// They were in it already; nothing changed.
    case duplicate
    /// It waits for an earlier packet, or for the rest of its transaction.
    case buffered
  }

  /// The packet's last operation, by which the device knows the packet.
  public let tail: OperationID
  /// The result of the packet as a whole.
  public let status: Status
  /// The places of the operations, in order and without a gap; `nil` for a buffered packet.
  public let sequences: ClosedRange<SequenceNumber>?
  /// The result of each operation, in the packet's order; empty if it is buffered.
  public let outcomes: [Outcome]
  /// The history hash before the packet's first operation; `nil` unless all of the packet was
  /// applied now, without a gap.
  public var historyHashBefore: UInt64?
  /// The history hash after the packet's last operation; `nil` as ``historyHashBefore`` is.
  public var historyHash: UInt64?
  /// The timeline on which the packet was applied; `nil` like ``historyHashBefore``, and from a
  /// server without timelines.
  public var timeline: Timeline?

  /// Creates a receipt from the given parts.
  public init(
    tail: OperationID, status: Status, sequences: ClosedRange<SequenceNumber>? = nil,
    outcomes: [Outcome] = [], historyHashBefore: UInt64? = nil, historyHash: UInt64? = nil,
    timeline: Timeline? = nil
  ) {
    self.tail = tail
    self.status = status
    self.sequences = sequences
    self.outcomes = outcomes
    self.historyHashBefore = historyHashBefore
    self.historyHash = historyHash
    self.timeline = timeline
  }
}

/// The answer to `POST …/packets`.
public struct PacketAnswer: Sendable, Equatable {
  /// The receipt for the sent packet.
  public var receipt: PacketReceipt
  /// The receipts of packets of the same device behind this one in the buffer.
  public var released: [PacketReceipt]
  /// The space's epoch.
  public var epoch: Epoch
  /// The space's newest sequence.
  public var head: SequenceNumber
  /// The server's wall clock, milliseconds since 1970.
  public var serverTime: Int64

  /// Creates an answer from the given parts.
  public init(
    receipt: PacketReceipt, released: [PacketReceipt] = [], epoch: Epoch, head: SequenceNumber,
    serverTime: Int64
  ) {
    self.receipt = receipt
    self.released = released
    self.epoch = epoch
    self.head = head
    self.serverTime = serverTime
  }
}

/// One entry of a pull list: the parts of one record missing on a device.
package struct Change: Sendable, Equatable {
  package var sequence: SequenceNumber
  package var key: RecordKey
  /// Only the parts changed after the pull's cursor. With an insert: the whole record. With a
  /// delete: it is gone.
  package var state: RecordState

  package init(sequence: SequenceNumber, key: RecordKey, state: RecordState) {
    self.sequence = sequence
    self.key = key
    self.state = state
  }
}

/// All of a page but the changes, which a client reads one by one.
package struct PageHead: Sendable, Equatable {
  package var epoch: Epoch
  package var head: SequenceNumber
  /// The cursor for the request of the next page, or to keep if there is none.
  package var cursor: Cursor
  /// True if the list goes on: nothing of it may be shown before it has ended.
  package var more: Bool
  /// The last operation of this device in the history.
  package var appliedTail: OperationID?
  /// The server's wall clock, milliseconds since 1970.
  package var serverTime: Int64
  /// The number of changes in the page.
  package var count: Int
  /// The asking device's name, as the server has it; `nil` if it has none.
  package var deviceName: DeviceName?
  /// The number of name changes of the space's devices: a device that has seen this number knows
  /// the names.
  package var nameChanges: SequenceNumber

  package init(
    epoch: Epoch, head: SequenceNumber, cursor: Cursor, more: Bool, appliedTail: OperationID?,
    serverTime: Int64, count: Int, deviceName: DeviceName? = nil, nameChanges: SequenceNumber = 0
  ) {
    self.deviceName = deviceName
    self.nameChanges = nameChanges
    self.count = count
    self.epoch = epoch
    self.head = head
    self.cursor = cursor
    self.more = more
    self.appliedTail = appliedTail
    self.serverTime = serverTime
  }
}

/// The permissions of a token in a space.
public enum Role: String, Sendable, CaseIterable, Comparable {
  case reader
  case writer
  case admin

  public static func < (left: Role, right: Role) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .reader: 0
    case .writer: 1
    case .admin: 2
    }
  }
}

/// The answer to `GET /v1/spaces/{space}`.
public struct SpaceInfo: Sendable, Equatable {
  /// The space asked for.
  public var space: SpaceName
  /// The epoch.
  public var epoch: Epoch
  /// The newest sequence.
  public var head: SequenceNumber
  /// The caller's role.
  public var role: Role
  /// The server's wall clock, milliseconds since 1970.
  public var serverTime: Int64

  /// Creates the info from the given parts.
  public init(
    space: SpaceName, epoch: Epoch, head: SequenceNumber, role: Role, serverTime: Int64
  ) {
    self.space = space
    self.epoch = epoch
    self.head = head
    self.role = role
    self.serverTime = serverTime
  }
}

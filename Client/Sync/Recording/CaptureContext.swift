import FerryProtocol
import SQLite

/// What the capture functions of one connection share: the values of the row being recorded,
/// the transaction's group, and the device's clock.
///
/// A group starts with the first recorded operation of a transaction and ends with it.
final class CaptureContext {
  /// The group under way.
  struct Group: Equatable {
    let number: Int64
    let base: SequenceNumber
    var operations = 0
    var bytes = 0
  }

  /// What is being written on this connection.
  enum Mode: Equatable {
    /// The user's own data: all of it is recorded.
    case recording
    /// A remote change to one record. Only rows that the schema deletes along with it (foreign
    /// keys with ON DELETE CASCADE) are recorded: they are news to the others.
    case applying
    /// Rows that a server lost, recorded as older than all that anybody wrote to them.
    case rescuing
    /// The effect of a batch on one record, which is recorded as the batch. What else changes along
    /// with it, by foreign keys or by the user's triggers, is recorded.
    case batching
  }

  var mode: Mode = .recording
  /// Whether the remote change being applied is a delete.
  private(set) var isDeleting = false
  /// The record that a remote change is being applied to.
  private(set) var appliedRecord = RecordKey(table: "", record: "")
  /// Whether that record's row is being taken out of its table for a moment.
  var isTakingAside = false
  /// How far rows were seen that go with that record; `nil` outside of a pull list.
  var seen: SeenRows?
  /// Whether that record has its new values: what is written after that is the doing of triggers.
  var isApplied = false
  /// Whether the write being looked at is a batch's own.
  var isBatched = false
  /// Transactions of the connection that were rolled back.
  var rollbacks = 0
  private(set) var clock = HybridClock()
  private var group: Group?
  private var row: CapturedRow
  private let limits: Limits
  private let wallClock: () -> Int64
  private let random: () -> UInt64

  init(limits: Limits, wallClock: @escaping () -> Int64, random: @escaping () -> UInt64) {
    self.limits = limits
    row = CapturedRow(limits: limits)
    self.wallClock = wallClock
    self.random = random
  }

  /// A remote change to one record comes next.
  func beginApplying(_ key: RecordKey, isDeleting: Bool) {
    appliedRecord = key
    self.isDeleting = isDeleting
    isApplied = false
  }

  /// What is recorded from here on is later than `time`.
  func observe(_ time: HybridTimestamp) { clock.observe(time) }

  // MARK: The row

  /// What comes before the row's last part, since one operation does not hold the row.
  var fullParts: [CapturedRow.Part] { row.fullParts }

  /// Hands the JSON of the row, or of its last part, to `body`.
  func withRow(_ body: (UnsafeBufferPointer<UInt8>) -> Void) { row.end(body) }

  /// Hands what the row's columns held before to `body`, where there is anything.
  func withFormer(_ body: (UnsafeBufferPointer<UInt8>) -> Void) { row.endFormer(body) }

  /// Hands the row's marks to `body`, where there are any.
  func withMarks(_ body: (UnsafeBufferPointer<UInt8>) -> Void) { row.endMarks(body) }

  /// Runs `body` on the row being recorded.
  func collect<T>(_ body: (inout CapturedRow) -> T) -> T { body(&row) }

  // MARK: The group

  /// The group under way, begun by `start` when there is none.
  func currentGroup(
    start: () throws -> (group: Int64, base: SequenceNumber, clock: HybridTimestamp, offset: Int64)
  ) rethrows -> Group {
    if let group { return group }
    let state = try start()
    clock.observe(state.clock)
    offset = state.offset
    let begun = Group(number: state.group, base: state.base)
    group = begun
    return begun
  }

  private var offset: Int64 = 0

  /// A wall clock's reading by the server's clock, whatever the two say.
  private func corrected(_ wall: Int64) -> Int64 {
    let (sum, overflows) = wall.addingReportingOverflow(offset)
    return overflows ? wall : sum
  }

  /// A new operation's id.
  func nextOperation() -> OperationID {
    let time =
      mode == .rescuing
      ? .rescue : clock.tick(wall: corrected(wallClock()))
    return OperationID(UniqueID(timestamp: time, random: random()))
  }

  /// What a pull deletes along with a parent is no transaction of the user's: each row is deleted for
  /// a reason of its own, and one that the server refuses takes no other with it.
  func endCascade() {
    if mode == .applying { group = nil }
  }

  /// Takes the row that was collected into the group under way. Answers with why it cannot be.
  func admitRow() -> CaptureRefusal? {
    if let fault = row.sizeFault { return CaptureRefusal(fault) }
    return admit(operations: row.partCount, bytes: row.byteCount)
  }

  /// Takes operations into the group under way. Answers with why they cannot be.
  func admit(operations: Int, bytes: Int) -> CaptureRefusal? {
    group?.operations += operations
    group?.bytes += bytes + operations * Self.operationBytes
    guard let group else { return CaptureRefusal("ferry: no group was begun") }
    guard group.operations <= limits.operationsPerTransaction else {
      return CaptureRefusal(
        "ferry: the transaction writes more than \(limits.operationsPerTransaction) records; write "
          + "it in smaller transactions")
    }
    return group.bytes > limits.transactionBytes ? tooManyBytes : nil
  }

  /// What an operation takes beside its values.
  private static let operationBytes = 256

  /// Whether the row that was collected has to begin another group: what is no transaction of the
  /// user's is divided as it fits.
  var isRowBeyondGroup: Bool {
    guard let group else { return false }
    let packetsMax = limits.parkedPackets / 2
    let operations = group.operations + row.partCount
    return operations
      > min(limits.operationsPerTransaction, limits.operationsPerPacket * packetsMax)
      || group.bytes + row.byteCount + row.partCount * Self.operationBytes > limits.transactionBytes
  }

  /// Counts what was recorded beside the row towards the transaction's size. Answers with why it
  /// is too large.
  func takeBytes(_ count: Int) -> CaptureRefusal? {
    group?.bytes += count
    guard let group, group.bytes > limits.transactionBytes else { return nil }
    return tooManyBytes
  }

  private var tooManyBytes: CaptureRefusal {
    CaptureRefusal(
      "ferry: the transaction writes more than \(limits.transactionBytes >> 20) MiB, counting "
        + "\(Self.operationBytes) bytes a record beside its values; write it in smaller "
        + "transactions")
  }

  /// The next recorded operation begins a new group.
  func endGroup() { group = nil }

  /// The transaction ended; the next recorded operation begins a new group.
  func endTransaction() {
    endGroup()
    row.drop()
  }
}

/// Why an operation cannot be recorded; fails the user's statement.
struct CaptureRefusal: Error {
  let message: String
  init(_ message: String) { self.message = message }
}

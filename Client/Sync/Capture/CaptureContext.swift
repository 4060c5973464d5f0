import FerryPersistence
import FerryPlatform
import FerryProtocol
import FerrySQLite

/// The shared state of one connection's capture functions: the values of the row being recorded,
/// the transaction's group, and the device's clock.
///
/// A group starts with the first recorded operation of a transaction and ends with it.
final class CaptureContext {
  /// The current group.
  struct Group: Equatable {
    let number: Int64
    let base: SequenceNumber
    /// True if an operation's place must be computed. Otherwise SQLite's next number is right.
    var isPlaceComputed: Bool
    var operations = 0
    var bytes = 0
  }

  /// The values at the start of a group.
  struct Start {
    let group: Int64
    let base: SequenceNumber
    let clock: HybridTimestamp
    let offset: Int64
    /// True if the newest operations were removed: their places must not be given to others.
    let hasRemovedNewest: Bool
  }

  /// The kind of a write on this connection.
  enum Mode: Equatable {
    /// The user's own data: all of it is recorded.
    case recording
    /// A remote change to one record. Only writes of the origin ``AppliedChange/Origin/device`` are
    /// recorded: rows changed along with it by foreign keys, and their triggers' writes.
    case applying
    /// Rows lost by a server, recorded as older than all real writes to them.
    case rescuing
    /// The effect of a batch on one record; the batch itself is the recorded operation. Other
    /// changes along with it, by foreign keys or by the user's triggers, are recorded.
    case batching
  }

  /// The kind of the writes under way; see ``during(_:_:)``.
  private(set) var mode = Mode.recording
  /// True if nothing is recorded, since a step of a migration runs.
  var isSuspended = false
  /// The current remote change.
  var applied = AppliedChange(key: RecordKey(table: "", record: ""), effect: .values)
  /// True if the record's row is temporarily out of the table.
  var isTakingAside = false
  /// How far the device has seen rows that go with the record; `nil` outside of a pull list.
  var seen: SeenRows?
  /// The integers that the records of the pull list contain; none outside of a pull list.
  var wished = WishedNumbersSource()
  /// The numbers of records by another database; `nil` if the replica counts.
  var numbered: NumberedList?

  /// Returns the numbers of a table by another database; `nil` if the replica counts.
  func numbered(_ table: Name) -> NumberedList? {
    numbered.flatMap { $0.numbering.counts(table) ? $0 : nil }
  }

  /// True if the current write is a batch's own.
  var isBatched = false
  /// How long ago the present write was made elsewhere, in milliseconds; 0 for one of now.
  var age: Int64 = 0
  /// Why the present writes overrule other devices' values; `nil` without a reason.
  var reason: String? { didSet { reasonBytes = SyncOperation.packetBytes(ofReason: reason) } }
  /// The bytes of the reason in each operation.
  private var reasonBytes = 0
  /// The number of rolled back transactions of the connection.
  var rollbacks = 0
  /// Throws the reason why this connection cannot record a change now; for connections of other
  /// libraries.
  var admission: (() throws -> Void)?
  /// The file's transaction under way, shared by all spaces.
  var fileTransaction = FileTransaction()
  /// Another space of the file that applies a change.
  var otherApplying: () -> CaptureContext? = { nil }
  /// Returns true if a record of this space has a row.
  var hasRow: (RecordKey) throws -> Bool = { _ in true }
  /// Returns true if a record's row refers to a removed row of an untracked table.
  var hasLostParent: (RecordKey) throws -> Bool = { _ in false }
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

  /// Runs `body` with writes of a kind. Writes of another kind within it have a closure of their own.
  func during<T>(_ mode: Mode, _ body: () throws -> T) rethrows -> T {
    let before = self.mode
    self.mode = mode
    defer { self.mode = before }
    return try body()
  }

  /// Begins a remote change to one record.
  ///
  /// - Parameter state: the record's new writes; `nil` if this device makes the change.
  func beginApplying(
    _ key: RecordKey, _ effect: AppliedChange.Effect, state: RecordState? = nil
  ) {
    applied = AppliedChange(key: key, effect: effect)
    applied.state = state
  }

  /// The device whose change is being applied; `nil` outside of a remote change.
  var author: DeviceID? { mode == .applying ? applied.state?.newestAuthor : nil }

  /// Returns the origin of a write to a table of `space` while this space applies a change.
  ///
  /// - Parameter isRecord: true if the write concerns the record being applied.
  func origin(
    of write: OperationKind, isRecord: Bool, in space: CaptureContext, _ key: () -> RecordKey
  ) throws -> AppliedChange.Origin {
    // The questions may run SQL functions that read the change.
    var change = applied
    defer { applied = change }
    return try change.origin(
      of: write, isRecord: isRecord, hasRow: { try hasRow(applied.key) },
      hasLostParent: { try space.hasLostParent(key()) })
  }

  /// Deletes rows that go with the record being deleted, before `body` returns. The device records
  /// them.
  func takingAlong(_ body: () throws -> Void) rethrows {
    applied.isTakingAlong = true
    defer { applied.isTakingAlong = false }
    try body()
  }

  /// True while a remote change other than a delete is applied.
  var isApplyingValues: Bool { mode == .applying && applied.effect == .values }

  /// Moves the clock past `time`, so later operations are newer.
  func observe(_ time: HybridTimestamp) { clock.observe(time) }

  // MARK: The row

  /// The parts before the row's last one, if one operation is too small for the row.
  var fullParts: [CapturedRow.Part] { row.fullParts }

  /// Passes the JSON of the row, or of the last part, to `body`.
  func withRow(_ body: (UnsafeBufferPointer<UInt8>) -> Void) { row.end(body) }

  /// Passes the former values of the row's columns to `body`, if there are any.
  func withFormer(_ body: (UnsafeBufferPointer<UInt8>) -> Void) { row.endFormer(body) }

  /// Passes the row's marks to `body`, if there are any.
  func withMarks(_ body: (UnsafeBufferPointer<UInt8>) -> Void) { row.endMarks(body) }

  /// Runs `body` on the row being recorded.
  func collect<T>(_ body: (inout CapturedRow) -> T) -> T { body(&row) }

  // MARK: The group

  /// Returns the current group; `start` begins one if there is none.
  func currentGroup(start: () throws -> Start) rethrows -> Group {
    if let group { return group }
    let state = try start()
    clock.observe(state.clock)
    offset = state.offset
    let begun = Group(
      number: state.group, base: state.base, isPlaceComputed: state.hasRemovedNewest)
    group = begun
    return begun
  }

  private var offset: Int64 = 0

  /// Returns a wall clock's reading corrected to the server's clock; safe for any two values.
  private func corrected(_ wall: Int64) -> Int64 {
    let (sum, overflows) = wall.addingReportingOverflow(offset)
    return overflows ? wall : sum
  }

  /// Returns the id of a new operation.
  func nextOperation() -> OperationID {
    let time = mode == .rescuing ? .rescue : clock.tick(wall: corrected(writtenAt()))
    return OperationID(UniqueID(timestamp: time, random: random()))
  }

  /// Returns the wall clock's reading when the present write was made.
  private func writtenAt() -> Int64 {
    let now = wallClock()
    let (time, overflows) = now.subtractingReportingOverflow(age)
    return overflows ? now : time
  }

  /// Returns the name of the user's transaction under way in the states of numbers (``NumberedRecord``).
  func transactionMark() -> Int64 { fileTransaction.mark(random) }

  /// Returns the identifier of a new record of a mapped table. It contains the record's number, so
  /// other devices may use the same one.
  func newRecord(_ number: Int64, in table: Name) -> String {
    if let numbered = numbered(table) { return numbered.numbering.record(of: number, in: table) }
    let now = corrected(wallClock())
    guard number > 0, let short = UInt32(exactly: number) else {
      return UniqueID(timestamp: HybridTimestamp(milliseconds: now), random: random()).description
    }
    return UniqueID(milliseconds: now, random: random(), number: short).description
  }

  /// Records that operations are removed during the group.
  func operationsAreRemoved() { group?.isPlaceComputed = true }

  /// Ends the group of a cascade. A pull's deletes along with a parent are not a transaction of the
  /// user's. Each row is deleted for a separate reason, so a rejected one affects no other.
  func endCascade() {
    if mode == .applying { group = nil }
  }

  /// Adds the collected row of a table to the current group. Returns the reason if this is
  /// impossible.
  func admitRow(of table: UnsafeRawBufferPointer) -> CaptureRefusal? {
    if let fault = row.sizeFault { return CaptureRefusal("ferry: \(fault)") }
    let bytes = row.byteCount + row.partCount * reasonBytes
    return admit(operations: row.partCount, bytes: bytes, table: table)
  }

  /// Adds operations to the current group. Returns the reason if this is impossible.
  func admit(
    operations: Int, bytes: Int, table: UnsafeRawBufferPointer? = nil
  ) -> CaptureRefusal? {
    group?.operations += operations
    group?.bytes += bytes + operations * Self.operationBytes
    guard let group else { return CaptureRefusal("ferry: no group was begun") }
    guard group.operations <= limits.operationsPerTransaction else {
      return CaptureRefusal(
        "ferry: the transaction writes more than \(limits.operationsPerTransaction.grouped) records; "
          + remedy(table), code: DatabaseError.tooManyWritesCode)
    }
    return group.bytes > limits.transactionBytes ? tooManyBytes(remedy(table)) : nil
  }

  /// The bytes of an operation beside the values.
  private static let operationBytes = 256

  /// True if the collected row must begin another group. Rows outside of a user's transaction are
  /// divided by size.
  var isRowBeyondGroup: Bool {
    guard let group else { return false }
    let packetsMax = limits.bufferedPackets / 2
    let operations = group.operations + row.partCount
    return operations
      > min(limits.operationsPerTransaction, limits.operationsPerPacket * packetsMax)
      || group.bytes + row.byteCount + row.partCount * (Self.operationBytes + reasonBytes)
        > limits.transactionBytes
  }

  /// Adds bytes recorded beside the row to the transaction's size. Returns the reason if it is too
  /// large.
  func addBytes(_ count: Int) -> CaptureRefusal? {
    group?.bytes += count
    guard let group, group.bytes > limits.transactionBytes else { return nil }
    return tooManyBytes(Self.smaller)
  }

  private func tooManyBytes(_ remedy: String) -> CaptureRefusal {
    CaptureRefusal(
      "ferry: the transaction writes more than \(limits.transactionBytes >> 20) MiB, counting "
        + "\(Self.operationBytes) bytes a record beside its values; \(remedy)",
      code: DatabaseError.tooManyWritesCode)
  }

  /// Returns the next step after a transaction over the size limit. A batch replaces updates and
  /// deletes of many records, and no inserts.
  ///
  /// - Parameter table: the table of the first row over the limit.
  private func remedy(_ table: UnsafeRawBufferPointer?) -> String {
    guard row.mayBeBatch else { return Self.smaller }
    let batch =
      "use one batch (`ferry batch`, `replica.batch`), which sets columns of up to "
      + "\(limits.batchRecords) records or deletes them"
    guard row.isDeleted, let table else { return "\(batch); or \(Self.smaller)" }
    // A batch of their parents would record each of them.
    let name = Name(String(decoding: table, as: UTF8.self))
    let command = name.command("ferry batch --delete --where PREDICATE")
    return "\(batch). Rows of \(name) that go with other rows (ON DELETE) need a batch of their "
      + "own before: `\(command)`. Or \(Self.smaller)"
  }

  private static let smaller = "write it in smaller transactions"

  /// Ends the group; the next recorded operation begins a new one.
  func endGroup() { group = nil }

  /// Records the end of the transaction in SQLite.
  func transactionEnded(isCommitted: Bool) {
    if !isCommitted { rollbacks += 1 }
    endTransaction()
  }

  /// Ends the transaction; the next recorded operation begins a new group.
  func endTransaction() {
    endGroup()
    fileTransaction.end()
    row.drop()
  }
}

/// The reason why an operation cannot be recorded; fails the user's statement.
struct CaptureRefusal: Error {
  let message: String
  let code: Int32

  init(_ message: String, code: Int32 = DatabaseError.refusedCode) {
    (self.message, self.code) = (message, code)
  }
}

extension SQLiteAnswer {
  func fail(_ refusal: CaptureRefusal) {
    fail(SQLiteError(code: refusal.code, message: refusal.message))
  }
}

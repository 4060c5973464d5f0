import FerryPostgres

/// The work of one connection of a reader of the log.
struct LogWork {
  var progress: ReplicationProgress
  var streamed = StreamedTransactions()
  /// The messages of open transactions.
  var spools: [UInt32: LogSpool] = [:]
  var assembler = TransactionAssembler(bytesMax: Self.partBytesMax)
  var writer: LogWriter
  /// The end of the last complete transaction in the writer, and the number of them.
  var last: PostgresLSN?
  var count = 0
  /// True if a part of a transaction is in the writer.
  var isPartial = false
  var waits = LogWaits()

  /// The memory of a part of a transaction.
  private static let partBytesMax = 16 << 20

  init(_ connection: PostgresConnection, _ log: MirrorLog) {
    progress = ReplicationProgress(stored: log.stored)
    writer = LogWriter(connection, log)
  }

  /// The server sends open transactions again after a break, so they do not count.
  var isIdle: Bool { !assembler.isOpen && !writer.isDirty }
}

/// Waits for the log, each with the position to reach; pure.
struct LogWaits {
  private var waiting: [(wait: LogWait, end: PostgresLSN)] = []

  var isEmpty: Bool { waiting.isEmpty }
  var all: [LogWait] { waiting.map(\.wait) }

  mutating func add(_ waits: [LogWait], through end: PostgresLSN) {
    waiting += waits.map { ($0, end) }
  }

  /// Removes the waits that end at a position, and returns them.
  mutating func remove(through end: PostgresLSN) -> [LogWait] {
    let reached = waiting.filter { $0.end <= end }.map(\.wait)
    waiting.removeAll { $0.end <= end }
    return reached
  }
}

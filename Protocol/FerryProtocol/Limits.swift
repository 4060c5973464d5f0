import FerryPlatform

/// Limits of messages. Wire input is checked against these once, where it is decoded.
public struct Limits: Sendable, Equatable {
  /// Operations in one packet.
  public var operationsPerPacket = 1_000
  /// The target size of a device's packet, in bytes: a device closes a packet before passing this.
  public var packetBytesTarget = 1 << 20
  /// The size of a message after decompression above which it is refused, in bytes. Larger than the
  /// target, so one operation with values of full size still fits.
  public var messageBytes = 8 << 20
  /// Bytes of one text or blob value.
  public var valueBytes = 1 << 20
  /// Bytes of all values of one operation.
  public var operationBytes = 4 << 20
  /// Columns in one operation; SQLite's own default limit of a table is 2,000.
  public var columns = 1_000
  /// Bytes of a record's state in the server's binary form; the JSON is larger. A delete is applied
  /// even if the state is then larger.
  public var recordStateBytes = 8 << 20
  /// The most bytes of all records written by one packet, or by one transaction in several packets.
  /// They count as stored before it.
  public var packetStateBytes = 256 << 20
  /// Columns of a record, written by any number of operations.
  public var recordColumns = 2_000
  /// Tables of a space, beside those in the schema.
  public var tables = 1_000
  /// Columns of a table, beside those in the space's schema: the default limit of SQLite for a
  /// table of a device.
  public var tableColumns = 2_000
  /// Bytes of a table's or column's name.
  public var nameBytes = 128
  /// Bytes of a record's identifier.
  public var recordBytes = 512
  /// Bytes of an operation's reason.
  public var reasonBytes = 1_000
  /// Nesting of JSON.
  public var depth = 16
  /// Buffered packets of one device: they wait for the one before them, or for the rest of their
  /// transaction.
  public var bufferedPackets = 100
  /// Bytes of those packets.
  public var bufferedBytes = 16 << 20
  /// Operations of one local transaction. So many fit into ``transactionBytes`` if their rows are
  /// short: each counts 256 bytes beside the values.
  public var operationsPerTransaction = 40_000
  /// Bytes of one local transaction, within the limit of buffered packets.
  public var transactionBytes = 12 << 20
  /// Changes that a client may request in one page of a pull list.
  public var changesPerPage = 10_000
  /// Records in one request, independent of a device's cursor.
  public var recordsPerRequest = 1_000
  /// Former identities in a device's pull.
  public var formerDevices = 16
  /// Devices whose names one request may ask for.
  public var devicesPerRequest = 1_000
  /// Bytes at which a page is closed even though fewer changes than asked for are in it.
  public var pageBytes = 4 << 20
  /// Records of leaves in one answer about digests; a leaf continues in the next answer.
  public var digestsPerAnswer = 16_384
  /// Bytes of a space's schema document.
  public var schemaBytes = 256 << 10
  /// Tables in a schema.
  public var schemaTables = 1_000
  /// Nesting of a predicate, which leaves room for the message around it within ``depth``.
  public var predicateDepth = 12
  /// Operators, comparisons and values of a predicate.
  public var predicateNodes = 1_000
  /// Records matched by the batch operations of one packet together.
  public var batchRecords = 100_000
  /// Bytes of those records as they are stored.
  public var batchBytes = 64 << 20
  /// The highest cost of one packet's predicates: comparisons, operators and values, for each
  /// examined record.
  public var batchEvaluations = 50_000_000
  /// The most time that a timestamp may be ahead of the server's clock before it is clamped, in
  /// milliseconds.
  public var clockSkewMax: Int64 = 60_000

  /// Creates the defaults, which both sides share unless the server is configured otherwise.
  public init() {}

  /// The retention of confirmed operations on devices, milliseconds by the server's clock. Older
  /// backups of a server are not expected to be restored (SPEC.md §5).
  package static let confirmedAgeMax: Int64 = 14 * 24 * 3_600_000

  /// The largest sequence, head or base in a message. It is far from both a real history and the
  /// end of 64 bits, so a successor or a difference never overflows.
  package static let sequenceMax: SequenceNumber = 1 << 62

  /// Characters of a device's name, counted as Unicode scalars. They have 256 bytes at most.
  package static let deviceNameCharacters = 64

  /// The last reading of a wall clock in a message, milliseconds since 1970: the 48 bits of a
  /// ``HybridTimestamp``.
  package static let wallTimeMax: Int64 = (1 << 48) - 1

  /// The defaults.
  public static let standard = Limits()
}

// Sizes derived from the limits above. Both sides derive them from the same numbers.
extension Limits {
  /// Bytes of a record's table and identifier in JSON: only identifiers need escapes.
  private var keyBytes: Int { 2 * nameBytes + 6 * recordBytes + 128 }

  /// Bytes of a sent record's state above ``recordStateBytes``: places and stamps. Deletes and lost
  /// writes add to them, and they are longer in JSON.
  package var recordStateSlack: Int { (recordColumns + 2) * (64 + 176) + 1_024 }

  /// Returns the bytes that a row's columns may have as JSON when a device writes them. The
  /// record's state then has room for the columns' places and stamps, each written by itself.
  package func rowBytes(columns: Int) -> Int { recordStateBytes - 1_024 - columns * 240 }

  /// Bytes of the notices from one operation: each of its values, and each of the record's, is
  /// quoted once at most, with two stamps. Each notice has the operation's reason.
  package var noticeBytes: Int {
    recordStateBytes + recordStateSlack + messageBytes
      + (recordColumns + columns) * (2 * nameBytes + 256) + (formerDevices + 1)
      * (keyBytes + 6 * reasonBytes + 256)
  }

  /// Bytes of the largest page: one byte below the closing size, it takes another record and the
  /// notices of its place. No answer of a server to a device is larger.
  package var answerBytes: Int {
    pageBytes + recordStateBytes + recordStateSlack + noticeBytes + keyBytes + 4_096
  }
}

/// Names for a device's writes.
package enum NameRule {
  /// Returns the reason why `name` cannot be a table's or a column's name, or `nil` when it can.
  package static func fault(in name: Name, limits: Limits) -> String? {
    let count = name.utf8.count
    if count == 0 { return "a name is empty" }
    if count > limits.nameBytes {
      return "a name has \(count) bytes; \(limits.nameBytes) are allowed"
    }
    let hasControl = name.withBytes { bytes in bytes.contains { $0 < 0x20 || $0 == 0x7F } }
    return hasControl ? "a name holds a control character" : nil
  }

  /// Returns the reason why `record` cannot be a record's identifier, or `nil` when it can.
  package static func fault(inRecord record: Name, limits: Limits) -> String? {
    guard (1...limits.recordBytes).contains(record.utf8.count) else {
      return "a record's identifier has 1 to \(limits.recordBytes) bytes"
    }
    let hasZero = record.withBytes { bytes in
      bytes.baseAddress.map { memchr($0, 0, bytes.count) != nil } ?? false
    }
    return hasZero ? "U+0000 in a record's identifier" : nil
  }

  /// Returns `true` if the table belongs to SQLite or to Ferry itself, so no device may write it.
  package static func isReserved(table: Name) -> Bool {
    let folded = table.folded.utf8
    return folded.starts(with: "ferry_".utf8) || folded.starts(with: "sqlite_".utf8)
  }
}

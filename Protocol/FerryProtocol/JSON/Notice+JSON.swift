extension JSONWriter {
  /// Writes one element of a page's `notices`.
  package mutating func notice(_ notice: Notice) {
    object { json in
      json.member("sequence", digits: notice.sequence)
      json.member("operation", notice.operation.value)
      json.member("table", notice.key.table)
      json.member("record", notice.key.record)
      if let overruling = notice.overruling {
        json.member("kind", overruling.kind.rawValue)
        json.member("reason", overruling.reason)
      }
      json.key("conflicts")
      json.conflicts(notice.conflicts)
    }
  }
}

extension Notice {
  package init(from reader: inout JSONReader, limits: Limits) throws(MalformedMessage) {
    var sequence: SequenceNumber?
    var operation: OperationID?
    var table: Name?
    var record: Name?
    var conflicts: [Conflict] = []
    var kind: OperationKind?
    var reason: String?
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "sequence": sequence = try reader.sequence()
      case "operation": operation = OperationID(try reader.uniqueID())
      case "table": table = try reader.tableName(limits: limits)
      case "record": record = try reader.recordName(limits: limits)
      case "kind": kind = try OperationKind(from: &reader)
      case "reason": reason = try SyncOperation.reason(from: &reader, limits: limits)
      case "conflicts": conflicts = try Conflict.list(from: &reader, limits: limits)
      default: try reader.skip()
      }
    }
    guard let sequence, let operation, let table, let record else {
      throw reader.malformed("a notice without sequence, operation, table or record")
    }
    var overruling: Overruling?
    if let reason {
      guard let kind, kind != .batch else {
        throw reader.malformed("a notice with a reason and without the operation's kind")
      }
      overruling = Overruling(kind: kind, reason: reason)
    }
    self.init(
      sequence: sequence, operation: operation, key: RecordKey(table: table, record: record),
      conflicts: conflicts, overruling: overruling)
  }
}

extension PageReader {
  /// Ends the reading at the beginning of the changes.
  private static let changesBegin = MalformedMessage(reason: "the changes begin", offset: -1)

  /// Reads the page's notices, in ascending sequence; none if it has none. They are before the
  /// changes, which this does not look at.
  package static func notices(
    of page: UnsafeRawBufferPointer, limits: Limits
  ) throws(MalformedMessage) -> [Notice] {
    var reader = JSONReader(page)
    var notices: [Notice] = []
    do throws(MalformedMessage) {
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "changes": throw changesBegin
        case "notices":
          try reader.array { (reader) throws(MalformedMessage) in
            notices.append(try Notice(from: &reader, limits: limits))
          }
        default: try reader.skip()
        }
      }
    } catch {
      if error != changesBegin { throw error }
    }
    return notices
  }

  /// Returns the page's notices, see ``notices(of:limits:)-(UnsafeRawBufferPointer,_)``.
  package static func notices(
    of page: [UInt8], limits: Limits
  ) throws(MalformedMessage) -> [Notice] {
    try page.withUnsafeBytes { (buffer) -> Result<[Notice], MalformedMessage> in
      Result { () throws(MalformedMessage) in try notices(of: buffer, limits: limits) }
    }.get()
  }
}

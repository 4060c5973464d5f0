extension JSONWriter {
  /// A page up to its changes; they follow, comma-separated, then ``endPage()``. The head comes
  /// first so that a client can stage the changes unread. `notices`: those for the asking device,
  /// as ``notice(_:)`` writes them, comma-separated.
  package mutating func beginPage(_ page: PageHead, notices: [UInt8] = []) {
    raw("{\"epoch\":\"")
    raw(page.epoch.description.utf8)
    raw("\",\"head\":")
    numberString(page.head)
    raw(",\"cursor\":\"")
    raw(page.cursor.description.utf8)
    raw("\",\"more\":")
    bool(page.more)
    raw(",\"applied\":")
    if let tail = page.appliedTail { string(tail.value) } else { raw("null") }
    raw(",\"time\":")
    number(page.serverTime)
    raw(",\"count\":")
    number(Int64(page.count))
    if !notices.isEmpty {
      raw(",\"notices\":[")
      raw(notices)
      raw("]")
    }
    raw(",\"changes\":[")
  }

  package mutating func endPage() { raw("]}") }

  /// One change, its state being JSON already.
  package mutating func change(
    sequence: SequenceNumber, table: UnsafeBufferPointer<UInt8>,
    record: UnsafeBufferPointer<UInt8>, state: UnsafeRawBufferPointer
  ) {
    changeHead(sequence, table, record)
    raw(state)
    raw("}")
  }

  package mutating func change(_ change: Change) {
    var table = change.key.table
    var record = change.key.record
    table.withUTF8 { table in record.withUTF8 { changeHead(change.sequence, table, $0) } }
    state(change.state)
    raw("}")
  }

  private mutating func changeHead(
    _ sequence: SequenceNumber, _ table: UnsafeBufferPointer<UInt8>,
    _ record: UnsafeBufferPointer<UInt8>
  ) {
    raw("{\"sequence\":")
    numberString(sequence)
    raw(",\"table\":")
    string(utf8: table)
    raw(",\"record\":")
    string(utf8: record)
    raw(",\"writes\":")
  }
}

/// Reads a page: its head, and each change as it comes, so that a page is never held twice.
package enum PageReader {
  /// Reads `bytes` and calls `each` for every change. Answers with the head.
  package static func read(
    _ bytes: UnsafeRawBufferPointer, limits: Limits,
    each: (Change) throws(MalformedMessage) -> Void
  ) throws(MalformedMessage) -> PageHead {
    var reader = JSONReader(bytes)
    var parts = PageParts()
    var found: Int?
    try reader.object { (key, reader) throws(MalformedMessage) in
      if case "changes" = key {
        var count = 0
        try reader.array { (reader) throws(MalformedMessage) in
          count += 1
          try each(try reader.change(limits: limits))
        }
        found = count
      } else {
        try reader.pageMember(key, &parts)
      }
    }
    try reader.end()
    let head = try parts.head(reader)
    guard let found, found == head.count else {
      throw reader.malformed("a page says that it has \(head.count) changes and has \(found ?? 0)")
    }
    return head
  }

  /// Reads only the head, which stands before the changes; these are not looked at.
  package static func head(of bytes: [UInt8]) throws(MalformedMessage) -> PageHead {
    let result = bytes.withUnsafeBytes { buffer -> Result<PageHead, MalformedMessage> in
      var reader = JSONReader(buffer)
      var parts = PageParts()
      do throws(MalformedMessage) {
        try reader.object { (key, reader) throws(MalformedMessage) in
          if case "changes" = key { throw PageParts.headEnds }
          try reader.pageMember(key, &parts)
        }
      } catch {
        if error != PageParts.headEnds { return .failure(error) }
      }
      return Result { () throws(MalformedMessage) in try parts.head(reader) }
    }
    return try result.get()
  }
}

private struct PageParts {
  var epoch: Epoch?
  var head: SequenceNumber?
  var cursor: Cursor?
  var more: Bool?
  var appliedTail: OperationID?
  var time: Int64?
  var count = 0

  /// Ends the reading where the changes begin.
  static let headEnds = MalformedMessage(reason: "the changes begin", offset: -1)

  func head(_ reader: JSONReader) throws(MalformedMessage) -> PageHead {
    guard let epoch, let head, let cursor, let more, let time else {
      throw reader.malformed("a page lacks epoch, head, cursor, more or time")
    }
    return PageHead(
      epoch: epoch, head: head, cursor: cursor, more: more, appliedTail: appliedTail,
      serverTime: time, count: count)
  }
}

extension JSONReader {
  fileprivate mutating func pageMember(
    _ key: JSONKey, _ parts: inout PageParts
  ) throws(MalformedMessage) {
    switch key {
    case "epoch": parts.epoch = Epoch(try string())
    case "head": parts.head = try sequence()
    case "cursor": parts.cursor = Cursor(try string())
    case "more": parts.more = try bool()
    case "applied":
      if try !null() { parts.appliedTail = OperationID(try uniqueID()) }
    case "time": parts.time = try integer()
    case "count": parts.count = Int(clamping: try integer())
    default: try skip()
    }
  }

  package mutating func change(limits: Limits) throws(MalformedMessage) -> Change {
    var sequence: SequenceNumber?
    var table: String?
    var record: String?
    var state = RecordState()
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "sequence": sequence = try reader.sequence()
      case "table": table = try reader.tableName(limits: limits)
      case "record": record = try reader.recordName(limits: limits)
      case "writes": state = try reader.recordState(limits: limits)
      default: try reader.skip()
      }
    }
    guard let sequence, let table, let record else {
      throw malformed("a change without sequence, table or record")
    }
    return Change(
      sequence: sequence, key: RecordKey(table: table, record: record), state: state)
  }
}

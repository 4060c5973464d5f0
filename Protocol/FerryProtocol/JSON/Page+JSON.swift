extension JSONWriter {
  /// Writes a page up to the changes; they follow, comma-separated, then ``endPage()``. The head
  /// comes first, so a client can stage the changes unread. `notices`: those for the asking device,
  /// as ``notice(_:)`` writes them, comma-separated.
  package mutating func beginPage(_ page: PageHead, notices: [UInt8] = []) {
    beginObject()
    member("epoch", page.epoch.description)
    member("head", digits: page.head)
    member("cursor", page.cursor.description)
    member("more", page.more)
    member("applied", page.appliedTail?.value)
    member("time", page.serverTime)
    member("count", page.count)
    member("deviceName", ifPresent: page.deviceName)
    if page.nameChanges > 0 { member("nameChanges", digits: page.nameChanges) }
    if !notices.isEmpty {
      key("notices")
      array { $0.raw(notices) }
    }
    key("changes")
    beginArray()
  }

  package mutating func endPage() {
    endArray()
    endObject()
  }

  /// Writes one change from a server's row, without reading the values.
  ///
  /// - Throws: `MalformedMessage` if the state is damaged; the output is then useless.
  package mutating func change(
    sequence: SequenceNumber, table: UnsafeBufferPointer<UInt8>, record: StoredRecordName,
    state: UnsafeRawBufferPointer
  ) throws(MalformedMessage) {
    beginObject()
    changeHead(sequence, table, record)
    try self.state(stored: state)
    endObject()
  }

  package mutating func change(_ change: Change) {
    var table = change.key.table.text
    object { json in
      table.withUTF8 { json.changeHead(change.sequence, $0, .text(change.key.record)) }
      json.state(change.state)
    }
  }

  private mutating func changeHead(
    _ sequence: SequenceNumber, _ table: UnsafeBufferPointer<UInt8>, _ record: StoredRecordName
  ) {
    block { text in
      text.append(#""sequence":""#)
      text.append(decimal: sequence)
      text.append(#"","table":"#)
    }
    string(utf8: table)
    switch record {
    case .uuid(let id):
      block { text in
        text.append(#","record":""#)
        text.append(id)
        text.append(#"","writes":"#)
      }
    case .text(let name):
      key("record")
      string(name)
      key("writes")
    }
  }
}

/// A reader of pages: the head, and each change as it comes, so a page is never held twice.
package enum PageReader {
  /// Reads `bytes` and calls `each` for every change. Returns the head.
  package static func read(
    _ bytes: UnsafeRawBufferPointer, limits: Limits,
    each: (Change) throws(MalformedMessage) -> Void
  ) throws(MalformedMessage) -> PageHead {
    try read(bytes, limits: limits, each: each) { (change) throws(MalformedMessage) in
      throw change.fault
    }
  }

  /// Reads as above. A change that violates a rule within correct JSON is passed to `unreadable`,
  /// and does not make the page malformed.
  package static func read(
    _ bytes: UnsafeRawBufferPointer, limits: Limits,
    each: (Change) throws(MalformedMessage) -> Void,
    unreadable: (UnreadableChange) throws(MalformedMessage) -> Void
  ) throws(MalformedMessage) -> PageHead {
    var reader = JSONReader(bytes, hasManyRecords: true)
    var parts = PageParts()
    var found: Int?
    try reader.object { (key, reader) throws(MalformedMessage) in
      if case "changes" = key {
        var count = 0
        try reader.array { (reader) throws(MalformedMessage) in
          count += 1
          switch try Change.orFault(from: &reader, limits: limits) {
          case .success(let change): try each(change)
          case .failure(let fault): try unreadable(fault)
          }
        }
        found = count
      } else {
        try parts.read(key, from: &reader)
      }
    }
    try reader.end()
    let head = try parts.head(reader)
    guard let found, found == head.count else {
      throw reader.malformed("a page announces \(head.count) changes and has \(found ?? 0)")
    }
    return head
  }

  /// Reads only the head, which is before the changes; these are not looked at.
  package static func head(
    of bytes: UnsafeRawBufferPointer
  ) throws(MalformedMessage) -> PageHead {
    var reader = JSONReader(bytes)
    var parts = PageParts()
    do throws(MalformedMessage) {
      try reader.object { (key, reader) throws(MalformedMessage) in
        if case "changes" = key { throw PageParts.headEnds }
        try parts.read(key, from: &reader)
      }
    } catch {
      if error != PageParts.headEnds { throw error }
    }
    return try parts.head(reader)
  }

  /// Reads only the head, as above.
  package static func head(of bytes: [UInt8]) throws(MalformedMessage) -> PageHead {
    try bytes.withUnsafeBytes { buffer in
      Result { () throws(MalformedMessage) in try head(of: buffer) }
    }.get()
  }
}

/// A change that violates the protocol, as far as it can be read.
package struct UnreadableChange: Error, Sendable, Equatable {
  /// `nil` if table or record cannot be read.
  package var key: RecordKey?
  package var sequence: SequenceNumber = 0
  /// The record's writes as they came: JSON.
  package var writes: [UInt8] = []
  /// The violated rule.
  package let fault: MalformedMessage

  package var reason: String { fault.reason }

  init(fault: MalformedMessage) { self.fault = fault }
}

private struct PageParts {
  var epoch: Epoch?
  var head: SequenceNumber?
  var cursor: Cursor?
  var more: Bool?
  var appliedTail: OperationID?
  var time: Int64?
  var count = 0
  var deviceName: DeviceName?
  var nameChanges: SequenceNumber = 0

  /// Ends the reading at the beginning of the changes.
  static let headEnds = MalformedMessage(reason: "the changes begin", offset: -1)

  mutating func read(
    _ key: JSONKey, from reader: inout JSONReader
  ) throws(MalformedMessage) {
    switch key {
    case "epoch": epoch = Epoch(try reader.string())
    case "head": head = try reader.sequence()
    case "cursor": cursor = Cursor(try reader.string())
    case "more": more = try reader.bool()
    case "applied":
      if try !reader.null() { appliedTail = OperationID(try reader.uniqueID()) }
    case "time": time = try reader.wallTime()
    case "count": count = try reader.count()
    case "deviceName":
      deviceName = try reader.null() ? nil : try DeviceName(from: &reader, .standard)
    case "nameChanges": nameChanges = try reader.sequence()
    default: try reader.skip()
    }
  }

  func head(_ reader: JSONReader) throws(MalformedMessage) -> PageHead {
    guard let epoch, let head, let cursor, let more, let time else {
      throw reader.malformed("a page lacks epoch, head, cursor, more or time")
    }
    return PageHead(
      epoch: epoch, head: head, cursor: cursor, more: more, appliedTail: appliedTail,
      serverTime: time, count: count, deviceName: deviceName, nameChanges: nameChanges)
  }
}

extension Change {
  /// Reads a change; if it violates a rule, the readable part of it.
  ///
  /// - Throws: `MalformedMessage` if it is not even JSON.
  fileprivate static func orFault(
    from reader: inout JSONReader, limits: Limits
  ) throws(MalformedMessage) -> Result<Change, UnreadableChange> {
    let start = reader
    do throws(MalformedMessage) {
      return .success(try Change(from: &reader, limits: limits))
    } catch {
      reader = start
      guard let change = try? UnreadableChange(from: &reader, error) else { throw error }
      return .failure(change)
    }
  }

  package init(from reader: inout JSONReader, limits: Limits) throws(MalformedMessage) {
    var sequence: SequenceNumber?
    var table: Name?
    var record: Name?
    var state = RecordState()
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "sequence": sequence = try reader.sequence()
      case "table": table = try reader.tableName(limits: limits)
      case "record": record = try reader.recordName(limits: limits)
      case "writes": state = try RecordState(from: &reader, limits: limits)
      default: try reader.skip()
      }
    }
    guard let sequence, let table, let record else {
      throw reader.malformed("a change without sequence, table or record")
    }
    guard state.deleted == nil || state.inserted == nil && state.columns.isEmpty else {
      throw reader.malformed("a delete is not the only write of its record")
    }
    self.init(sequence: sequence, key: RecordKey(table: table, record: record), state: state)
  }
}

extension UnreadableChange {
  fileprivate init(
    from reader: inout JSONReader, _ fault: MalformedMessage
  ) throws(MalformedMessage) {
    self.init(fault: fault)
    var table: Name?
    var record: Name?
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "sequence":
        sequence =
          try reader.ifReadable { (reader) throws(MalformedMessage) in try reader.sequence() } ?? 0
      case "table":
        table = try reader.ifReadable { (reader) throws(MalformedMessage) in try reader.name() }
      case "record":
        record = try reader.ifReadable { (reader) throws(MalformedMessage) in try reader.name() }
      case "writes": writes = Array(try reader.skip())
      default: try reader.skip()
      }
    }
    if let table, let record { key = RecordKey(table: table, record: record) }
  }
}

extension JSONReader {
  /// Returns the result of `read`; if this fails, skips the value and returns `nil`.
  ///
  /// - Throws: `MalformedMessage` if it is not even JSON.
  fileprivate mutating func ifReadable<T>(
    _ read: (inout JSONReader) throws(MalformedMessage) -> T
  ) throws(MalformedMessage) -> T? {
    var reader = self
    if let value = try? read(&reader) {
      self = reader
      return value
    }
    try skip()
    return nil
  }
}

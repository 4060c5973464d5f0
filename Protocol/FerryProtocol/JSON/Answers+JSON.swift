extension PacketAnswer {
  /// Returns the encoded answer (SPEC.md §4).
  ///
  /// - Parameter bytes: The limit of all quoted conflicts. Conflicts without room are left out and
  ///   counted: one packet may overrule much more than a device takes in one answer.
  package func encoded(quoting bytes: Int = Limits.standard.pageBytes) -> [UInt8] {
    var json = JSONWriter(capacity: 256 + receipt.outcomes.count * 12)
    var room = bytes
    json.object { json in
      json.receiptMembers(receipt, &room)
      if !released.isEmpty {
        json.key("released")
        json.array(of: released) { json, receipt in
          json.object { $0.receiptMembers(receipt, &room) }
        }
      }
      json.member("epoch", epoch.description)
      json.member("head", digits: head)
      json.member("time", serverTime)
    }
    return json.finish()
  }

  package init(decoding bytes: [UInt8], limits: Limits) throws(MalformedMessage) {
    self = try decode(bytes) { (reader) throws(MalformedMessage) in
      var receipt = ReceiptParts()
      var released: [PacketReceipt] = []
      var epoch: Epoch?
      var head: SequenceNumber?
      var time: Int64?
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "released":
          try reader.array { (reader) throws(MalformedMessage) in
            var parts = ReceiptParts()
            try reader.object { (key, reader) throws(MalformedMessage) in
              try parts.read(key, from: &reader, limits: limits)
            }
            released.append(try parts.receipt(reader))
          }
        case "epoch": epoch = Epoch(try reader.string())
        case "head": head = try reader.sequence()
        case "time": time = try reader.wallTime()
        default: try receipt.read(key, from: &reader, limits: limits)
        }
      }
      guard let epoch, let head, let time else {
        throw reader.malformed("an answer without epoch, head or time")
      }
      return PacketAnswer(
        receipt: try receipt.receipt(reader), released: released, epoch: epoch, head: head,
        serverTime: time)
    }
  }
}

/// A receipt while it is read.
private struct ReceiptParts {
  var tail: OperationID?
  var status: PacketReceipt.Status?
  var first: SequenceNumber?
  var last: SequenceNumber?
  var outcomes: [Outcome] = []
  var historyHashBefore: UInt64?
  var historyHash: UInt64?
  var timeline: Timeline?

  mutating func read(
    _ key: JSONKey, from reader: inout JSONReader, limits: Limits
  ) throws(MalformedMessage) {
    switch key {
    case "tail": tail = OperationID(try reader.uniqueID())
    case "status": status = PacketReceipt.Status(rawValue: try reader.string())
    case "first": first = try reader.sequence()
    case "last": last = try reader.sequence()
    case "historyHashBefore": historyHashBefore = try HistoryHash.read(from: &reader)
    case "historyHash": historyHash = try HistoryHash.read(from: &reader)
    case "timeline": timeline = Timeline(try HistoryHash.read(from: &reader))
    case "outcomes":
      outcomes = []
      try reader.array { (reader) throws(MalformedMessage) in
        outcomes.append(try Outcome(from: &reader, limits: limits))
      }
    default: try reader.skip()
    }
  }

  func receipt(_ reader: JSONReader) throws(MalformedMessage) -> PacketReceipt {
    guard let tail, let status else { throw reader.malformed("a receipt without tail or status") }
    var sequences: ClosedRange<SequenceNumber>?
    if let first, let last {
      guard first <= last else { throw reader.malformed("sequences run backwards") }
      sequences = first...last
    }
    return PacketReceipt(
      tail: tail, status: status, sequences: sequences, outcomes: outcomes,
      historyHashBefore: historyHashBefore, historyHash: historyHash, timeline: timeline)
  }
}

extension JSONWriter {
  fileprivate mutating func receiptMembers(_ receipt: PacketReceipt, _ room: inout Int) {
    member("tail", receipt.tail.value)
    member("status", receipt.status.rawValue)
    if let sequences = receipt.sequences {
      member("first", digits: sequences.lowerBound)
      member("last", digits: sequences.upperBound)
    }
    member("historyHashBefore", ifPresent: receipt.historyHashBefore.map(HistoryHash.text))
    member("historyHash", ifPresent: receipt.historyHash.map(HistoryHash.text))
    member("timeline", ifPresent: receipt.timeline.map { HistoryHash.text($0.value) })
    key("outcomes")
    array(of: receipt.outcomes) { json, outcome in json.quote(outcome, &room) }
  }

  /// Writes an outcome with all conflicts, if there is room for them.
  private mutating func quote(_ outcome: Outcome, _ room: inout Int) {
    if outcome.conflicts.isEmpty { return self.outcome(outcome) }
    var quoted = JSONWriter(capacity: 256)
    quoted.outcome(outcome)
    if quoted.count <= room {
      room -= quoted.count
      return raw(quoted.finish())
    }
    self.outcome(
      Outcome(
        isOverruled: outcome.isOverruled, records: outcome.records,
        omitted: outcome.conflicts.count))
  }

  /// Writes `"applied"`, or an object if values lost.
  package mutating func outcome(_ outcome: Outcome) {
    guard outcome != .applied else { return string("applied") }
    object { json in
      json.member("outcome", outcome.isOverruled ? "overruled" : "applied")
      json.key("conflicts")
      json.conflicts(outcome.conflicts)
      json.member("records", ifPresent: outcome.records)
      if outcome.omitted > 0 { json.member("omitted", outcome.omitted) }
    }
  }

  /// Writes a list of lost values.
  package mutating func conflicts(_ conflicts: [Conflict]) {
    array(of: conflicts) { json, conflict in
      json.object { json in
        json.member("column", conflict.column)
        json.member("lost", conflict.lost)
        json.key("loser")
        json.stamp(conflict.loser)
        json.key("winner")
        json.stamp(conflict.winner)
        if conflict.isQuestion { json.member("ask", true) }
      }
    }
  }

  private mutating func stamp(_ stamp: Stamp) {
    object { json in
      json.member("time", stamp.time)
      json.member("device", stamp.device.value)
    }
  }
}

extension Outcome {
  package init(from reader: inout JSONReader, limits: Limits) throws(MalformedMessage) {
    self.init()
    if try reader.peek() == 0x22 {
      guard try reader.string() == "applied" else { throw reader.malformed("an unknown outcome") }
      self = .applied
      return
    }
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "outcome": isOverruled = try reader.string() == "overruled"
      case "records": records = try reader.count()
      case "omitted": omitted = try reader.count()
      case "conflicts": conflicts = try Conflict.list(from: &reader, limits: limits)
      default: try reader.skip()
      }
    }
  }
}

extension Conflict {
  /// Reads a list of lost values.
  static func list(
    from reader: inout JSONReader, limits: Limits
  ) throws(MalformedMessage) -> [Conflict] {
    var conflicts: [Conflict] = []
    try reader.array { (reader) throws(MalformedMessage) in
      conflicts.append(try Conflict(from: &reader, limits: limits))
    }
    return conflicts
  }

  private init(from reader: inout JSONReader, limits: Limits) throws(MalformedMessage) {
    var column: Name?
    var lost: Value = .null
    var loser: Stamp?
    var winner: Stamp?
    var isQuestion = false
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "column": if try !reader.null() { column = try reader.name() }
      case "lost": lost = try reader.value(limits: limits)
      case "loser": loser = try Stamp(from: &reader)
      case "winner": winner = try Stamp(from: &reader)
      case "ask": isQuestion = try reader.bool()
      default: try reader.skip()
      }
    }
    guard let loser, let winner else {
      throw reader.malformed("a conflict without loser or winner")
    }
    self.init(column: column, lost: lost, loser: loser, winner: winner, isQuestion: isQuestion)
  }
}

extension Stamp {
  fileprivate init(from reader: inout JSONReader) throws(MalformedMessage) {
    var time: HybridTimestamp?
    var device: DeviceID?
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "time": time = try reader.timestamp()
      case "device": device = DeviceID(try reader.uniqueID())
      default: try reader.skip()
      }
    }
    guard let time, let device else { throw reader.malformed("a stamp without time or device") }
    self.init(time: time, device: device)
  }
}

extension HistoryHash {
  fileprivate static func read(from reader: inout JSONReader) throws(MalformedMessage) -> UInt64 {
    guard let hash = parse(try reader.string()) else {
      throw reader.malformed(
        "a history hash or timeline of something else than sixteen hexadecimal digits")
    }
    return hash
  }
}

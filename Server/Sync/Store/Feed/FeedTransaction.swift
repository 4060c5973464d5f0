import FerryProtocol

/// An operation of a space's history with its place in a transaction.
package struct FeedOperation: Sendable, Equatable {
  package let entry: HistoryEntry
  package let key: RecordKey
  /// The place of the transaction's first operation.
  package let transaction: SequenceNumber
  /// Increments, former values of texts and the reason, as JSON; `nil` without any.
  package let marks: [UInt8]?
  /// The history hash after it.
  let historyHash: UInt64
}

/// A committed transaction of a space, or a part of one too large for a page (SPEC.md §39).
package struct FeedTransaction: Sendable, Equatable {
  /// The place behind it: the feed continues there.
  package let cursor: Cursor
  package let operations: [FeedOperation]
  /// The owner and the name of the device; `nil` for an unknown device.
  package let author: DeviceIdentity?
  /// True if the next transaction of the feed is the rest of this one.
  package let continues: Bool
}

extension FeedTransaction: JSONWritable {
  /// Writes the line of the feed, without its end.
  package func write(to json: inout JSONWriter) {
    guard let last = operations.last else { return }
    json.object { json in
      json.member("cursor", cursor.description)
      json.member("transaction", digits: last.transaction)
      if continues { json.member("continues", true) }
      json.member("device", last.entry.device.value)
      json.member("name", author?.name?.text)
      json.member("user", author?.principal)
      json.member("time", RFC3339.text(milliseconds: last.entry.time.milliseconds))
      json.key("operations")
      json.array(of: operations)
    }
  }
}

extension FeedOperation: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("operation", entry.id.value)
      json.member("sequence", digits: entry.sequence)
      json.member("table", key.table)
      json.member("record", key.record)
      json.member("kind", entry.kind.rawValue)
      json.member("time", entry.time)
      json.key("data")
      if let data = entry.data { json.raw(data) } else { json.raw("null") }
      if let marks {
        json.key("marks")
        json.raw(marks)
      }
      json.key("outcome")
      if let outcome = entry.outcome { json.raw(outcome) } else { json.raw("\"applied\"") }
    }
  }
}

extension [FeedTransaction] {
  /// The lines of the feed, each with its end.
  package var lines: [UInt8] {
    var json = JSONWriter(capacity: 256 + reduce(0) { $0 + $1.operations.count } * 400)
    for transaction in self {
      transaction.write(to: &json)
      json.raw("\n")
    }
    return json.finish()
  }
}

/// A statement to run with these parameters: alone, or in the pipeline of a batch of packets.
enum PlainWrite: Sendable {
  case one(PlainStatement, [PlainValue])
  case many(PlainBatch, [PlainValue], of: [[PlainValue]])
}

extension PlainConnection {
  /// Runs all of these statements in order.
  func run(_ writes: [PlainWrite]) throws {
    for write in writes {
      switch write {
      case .one(let statement, let values): try run(statement, values)
      case .many(let batch, let shared, let keys): try run(batch, shared, of: keys)
      }
    }
  }
}

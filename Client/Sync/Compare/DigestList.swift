import FerryProtocol

/// A list of digests in several answers, of tables or of a leaf's records: a pure machine.
///
/// A server bounds answers (SPEC.md §16), and the next question has the last name of the answer
/// before it. A list ends, since the names ascend, and ``ListBound`` ends one of a hostile server.
struct DigestList: Equatable {
  /// The last name so far: the next question continues after it. `nil` at the start and after the
  /// end.
  private(set) var after: Name?
  private var bound = ListBound()
  private var count: SequenceNumber = 0

  /// Adds an answer.
  ///
  /// - Throws: ``ReplicaError`` if the list does not ascend, or does not end.
  mutating func accept(_ answer: DigestAnswer, bytes: Int) throws(ReplicaError) {
    if let after, !answer.content.continued.allSatisfy({ $0 > after }) {
      throw .unexpectedAnswer(status: 200, "digests without progress")
    }
    after = answer.more ? answer.content.lastName : nil
    guard answer.more else { return }
    count += 1
    if let fault = bound.accept(reached: count, head: .max, bytes: bytes) {
      throw ReplicaError(digests: fault)
    }
  }
}

extension DigestAnswer.Content {
  /// The names that continue the list of the answer before: tables, or the records of the first
  /// node.
  fileprivate var continued: [Name] {
    switch self {
    case .behind: []
    case .tables(let tables): tables.map(\.table)
    case .nodes(let nodes):
      if case .records(let records)? = nodes.first?.digests { records.map(\.record) } else { [] }
    }
  }
}

extension ReplicaError {
  /// Converts the fault of a list of digests.
  init(digests fault: ListBound.Fault) {
    self.init(
      fault, of: "digests", next: "compare again later, or ask the server's administrator")
  }
}

import Ferry
import FerryCommandLine
import FerryProtocol

/// An operation as named by a user: the identifier, or a unique beginning of it.
enum OperationArgument {
  /// The most candidates in an error.
  private static let candidatesMax = 5

  /// Returns the identifier for the text.
  ///
  /// - Throws: `UsageError` if it is no beginning of an identifier; `CommandFailure` with the
  ///   candidates if several operations begin with it; ``ReplicaError/notFound(_:)``.
  static func find(_ text: String, in replica: Replica) async throws -> OperationID {
    if let id = UniqueID(text) { return OperationID(id) }
    guard let prefix = UniqueIDPrefix(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not an operation",
        why: "operations have UUIDs, of which the first \(UniqueIDPrefix.charactersMin) or more "
          + "characters suffice if they are unique",
        next: "`ferry history` lists the operations")
    }
    let found = try await replica.operations.recorded(
      beginningWith: prefix, limit: candidatesMax + 1)
    let ids = Set(found.map(\.operation.id))
    guard let only = ids.first else {
      throw ReplicaError.notFound(.operation(text))
    }
    guard ids.count == 1 else {
      throw ambiguity(text, found, short: try await replica.operations.identifiers())
    }
    return only
  }

  private static func ambiguity(
    _ text: String, _ found: [OwnOperation], short: UniqueIDAbbreviations
  ) -> CommandFailure {
    let candidates = found.prefix(candidatesMax).map { own in
      let operation = own.operation
      return "\(short.text(for: operation.id.value)) (\(operation.kind.rawValue) "
        + "\(operation.key.table) \(BatchCommand.recordCell(operation).0))"
    }
    let more = found.count > candidatesMax ? ", and more" : ""
    return CommandFailure(
      "several operations begin with \(text)",
      why: candidates.joined(separator: ", ") + more,
      next: "give more characters; `ferry history` lists the operations", status: .usage,
      code: "ambiguous_operation")
  }
}

import FerryProtocol

extension Workload {
  /// A batch operation as a user requests it.
  package struct BatchUpdate: Sendable, Equatable {
    package var table: Name
    /// As text.
    package var predicate: String
    /// The new values, by column.
    package var columns: [Name: Value]
  }

  /// Returns the batch of a ``UserAction/batch``, which has no statements; `nil` for other actions.
  /// It fits every version of the application's schema.
  package static func batch(for planned: PlannedAction) -> BatchUpdate? {
    guard planned.action == .batch else { return nil }
    var random = SeededRandom(planned.seed, planned.action.rawValue)
    if random.chance(1, in: 2) {
      let done = random.below(2)
      return BatchUpdate(
        table: "items", predicate: "done = \(done)",
        columns: ["done": .integer(Int64(1 - done)), "label": ValueMaker.text(&random)])
    }
    let predicate = [
      "stars >= \(random.below(6))", "stars = \(random.below(6)) or title is null",
      "id <= 'n\(random.below(8))' and stars < \(1 + random.below(5))",
    ][random.below(3)]
    var columns: [Name: Value] = ["title": ValueMaker.text(&random)]
    if random.chance(1, in: 2) { columns["stars"] = ValueMaker.stars(&random) }
    return BatchUpdate(table: "notes", predicate: predicate, columns: columns)
  }
}

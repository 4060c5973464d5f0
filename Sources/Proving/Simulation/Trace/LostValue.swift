/// A value that lost against another device's value (SPEC.md §6), for people to read.
package struct LostValue: Sendable, Equatable {
  /// One of the two values.
  package struct Side: Sendable, Equatable {
    /// The value in the form of SPEC.md §3, or the operation: `the delete`. Empty if the server
    /// does not have it.
    package var value: String
    /// The author device: the name in the world, or the identifier.
    package var author: String

    package init(value: String, author: String) {
      self.value = value
      self.author = author
    }
  }

  /// The table, record and column: `tasks/7.title`, or `tasks/7` if the record itself is concerned.
  package var place: String
  package var lost: Side
  package var won: Side
  /// True if the user of the losing device is asked for the final value.
  package var isQuestion: Bool

  package init(place: String, lost: Side, won: Side, isQuestion: Bool = false) {
    self.place = place
    self.lost = lost
    self.won = won
    self.isQuestion = isQuestion
  }
}

extension LostValue: CustomStringConvertible {
  package var description: String {
    let asked = isQuestion ? "; its user is asked" : ""
    return "\(place): \(lost) lost to \(won)\(asked)"
  }
}

extension LostValue.Side: CustomStringConvertible {
  package var description: String {
    "\(value.isEmpty ? "a write that the server does not have" : value) of \(author)"
  }
}

/// The rules for the steps to run in a file.
struct MigrationPlan: Equatable {
  /// The places of the steps to run, in their order.
  let pending: Range<Int>

  /// Compares the steps of the application with those run in a file, in their order.
  ///
  /// - Throws: ``MigrationError`` if the file has run other steps.
  init(steps: [String], done: [String]) throws(MigrationError) {
    var seen = Set<String>()
    for name in steps {
      guard (1...Self.nameMax).contains(name.utf8.count) else {
        throw .badName(String(name.prefix(Self.shownMax)))
      }
      guard seen.insert(name).inserted else { throw .twice(name) }
    }
    for (index, name) in done.enumerated() {
      guard index < steps.count else { throw .newer(name) }
      guard steps[index] == name else { throw .otherOrder(done: name, expected: steps[index]) }
    }
    pending = done.count..<steps.count
  }

  /// The most bytes of a step's name.
  private static let nameMax = 255
  private static let shownMax = 40
}

/// The steps of an application do not fit a file.
public enum MigrationError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A step's name is empty or longer than 255 bytes.
  case badName(String)
  /// Two steps have one name.
  case twice(String)
  /// The file has run a step unknown to this version of the application.
  case newer(String)
  /// The file has run another step at this place.
  case otherOrder(done: String, expected: String)

  /// The error as a sentence, with the remedy.
  public var description: String {
    switch self {
    case .badName(let name): "a step's name has 1 to 255 bytes, unlike '\(name)'"
    case .twice(let name): "two steps are called '\(name)'; give one another name"
    case .newer(let name):
      "a newer version of the application ran step '\(name)' on this file; update the application"
    case .otherOrder(let done, let expected):
      "the file has run step '\(done)' in the place of '\(expected)'; add new steps at the end, and "
        + "leave the others as they were"
    }
  }
}

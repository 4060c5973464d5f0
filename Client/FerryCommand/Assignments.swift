import Ferry
import FerryCommandLine
import FerryPlatform
import FerryProtocol

/// The values of `--set COLUMN=VALUE`.
enum Assignments {
  /// The forms of a value, for help texts.
  static let discussion = """
    A value is an integer, a real, null, 'text' or x'blob'; anything else is text as it stands. \
    So --set code=007 sets the number 7, and --set "code='007'" the text.
    """

  /// Reads assignments in their order.
  ///
  /// - Throws: `UsageError` if one names no column, or a column is a duplicate.
  static func read(_ assignments: [String]) throws -> [Column] {
    var columns: [Column] = []
    for assignment in assignments {
      let parts = assignment.parts(at: "=", most: 2)
      guard parts.count == 2, !parts[0].isEmpty else {
        throw UsageError(
          .invalidValue, "--set \(assignment) sets nothing", why: "there is no COLUMN= in it",
          next: "write --set COLUMN=VALUE, such as --set done=1")
      }
      let name = Name(parts[0])
      guard !columns.contains(where: { $0.name == name }) else {
        throw UsageError(
          .repeatedOption, "column \(name) is set twice", why: "it can hold one value",
          next: "give --set \(name)=VALUE once")
      }
      columns.append(Column(name, Value(argument: String(parts[1]))))
    }
    return columns
  }
}

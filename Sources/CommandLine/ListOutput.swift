/// Prints a list read in pages, and keeps no page.
///
/// As JSON it is one object with one array. As text it is a table with columns for each page.
package struct ListOutput {
  /// A row of the table, and the same as JSON.
  package typealias Row = (cells: [String], json: JSONText)

  private let member: String
  private let titles: [String]
  private let isJSON: Bool
  /// The text in place of a table without rows.
  private let none: String?
  private let output: TextOutput
  private let width: Int?
  private var count = 0

  /// Creates a list without rows.
  ///
  /// - Parameters:
  ///   - member: the name of the array.
  ///   - titles: the columns of the table.
  ///   - none: the text in place of a table without rows; by default the titles.
  package init(
    _ member: String, _ titles: [String], isJSON: Bool, none: String? = nil,
    to output: TextOutput = .standardOutput, width: Int? = Terminal.current().tableWidth
  ) {
    self.none = none
    self.member = member
    self.titles = titles
    self.isJSON = isJSON
    self.output = output
    self.width = width
  }

  /// Prints a page.
  package mutating func add(_ rows: [Row]) throws {
    if rows.isEmpty { return }
    if isJSON {
      let texts = rows.map(\.json.text).joined(separator: ",")
      try output.write((count == 0 ? opening : ",") + texts)
    } else {
      try output.lines(table(rows).dropFirst(count == 0 ? 0 : headLines))
    }
    count += rows.count
  }

  /// Ends the list.
  package mutating func finish() throws {
    if isJSON {
      try output.write((count == 0 ? opening : "") + "]}\n")
    } else if count == 0 {
      try output.lines(none.map { [$0] } ?? table([]))
    }
  }

  private var opening: String {
    "{\(JSONText.string(member).text):["
  }

  /// The lines above the first row.
  private var headLines: Int { table([]).count }

  private func table(_ rows: [Row]) -> [String] {
    var table = TextTable(titles)
    for row in rows { table.append(row.cells) }
    return table.lines(width: width)
  }
}

/// Rows in aligned columns. Cells may contain anything: control characters are escaped, wide
/// characters are measured, and text without enough room ends in an ellipsis.
package struct TextTable: Sendable, Equatable {
  /// A column.
  package struct Column: Sendable, Equatable {
    /// The alignment of cells within their column.
    package enum Alignment: Sendable {
      /// Right when every filled cell is a number.
      case automatic
      case left
      case right
    }

    /// The heading.
    package var title: String
    /// The alignment of the cells and the heading.
    package var alignment: Alignment
    /// Columns at most; `nil` for as many as there are.
    package var widthMax: Int?
    /// True if the cells are never shortened to fit into a terminal, such as identifiers to be
    /// copied.
    package var isWhole: Bool

    /// Creates a column; see the properties.
    package init(
      _ title: String, _ alignment: Alignment = .automatic, widthMax: Int? = nil,
      isWhole: Bool = false
    ) {
      self.title = title
      self.alignment = alignment
      self.widthMax = widthMax
      self.isWhole = isWhole
    }
  }

  /// From left to right.
  package let columns: [Column]
  private var rows: [[String]] = []

  private static let separator = "  "
  /// Columns are not shrunk below this.
  private static let widthMin = 4

  /// Creates a table without rows.
  package init(_ columns: [Column]) {
    self.columns = columns
  }

  /// Creates a table without rows and with self-aligning columns.
  ///
  /// - Parameter whole: The titles of columns that are never shortened.
  package init(_ titles: [String], whole: Set<String> = []) {
    self.init(titles.map { Column($0, isWhole: whole.contains($0)) })
  }

  /// Rows added so far.
  package var count: Int { rows.count }

  /// Adds a row; missing cells are empty, cells too many are dropped.
  package mutating func append(_ cells: [String]) {
    var row = cells.prefix(columns.count).map(\.escapedForTerminal)
    row += Array(repeating: "", count: columns.count - row.count)
    rows.append(row)
  }

  /// Returns title, rule and rows, without spaces at their ends.
  ///
  /// - Parameters:
  ///   - width: Columns to fit into, by cutting the widest columns; `nil` cuts none. Whole columns
  ///     stay, and lines become longer if the others cannot give enough.
  ///   - glyphs: The characters to draw with.
  package func lines(width: Int? = nil, with glyphs: Glyphs = .current) -> [String] {
    let titles = columns.map(\.title.escapedForTerminal)
    let widths = fittedWidths(titles: titles, width: width)
    let isRight = columns.indices.map(isRightAligned)
    func line(_ cells: [String]) -> String {
      let padded = cells.indices.map { index in
        cells[index].truncated(toWidth: widths[index], with: glyphs)
          .padded(toWidth: widths[index], leading: isRight[index])
      }
      return padded.joined(separator: Self.separator).trimmingTrailingSpaces
    }
    let rule = widths.map { String(repeating: glyphs.rule, count: $0) }
      .joined(separator: Self.separator)
    return [line(titles), rule] + rows.map(line)
  }

  private func fittedWidths(titles: [String], width: Int?) -> [Int] {
    var widths = columns.indices.map { index in
      let widest = rows.lazy.map { $0[index].displayWidth }.max() ?? 0
      let wanted = max(titles[index].displayWidth, widest)
      return min(wanted, columns[index].widthMax ?? wanted)
    }
    guard let width else { return widths }
    var excess = widths.reduce(0, +) + Self.separator.count * (widths.count - 1) - width
    let shrinking = widths.indices.filter { !columns[$0].isWhole }
    while excess > 0, let widest = shrinking.max(by: { widths[$0] < widths[$1] }),
      widths[widest] > Self.widthMin
    {
      // Down to the second widest in one step, so a megabyte in a cell costs no time.
      let others = shrinking.filter { $0 != widest }.map { widths[$0] }.max() ?? 0
      let step = min(excess, max(1, widths[widest] - max(others, Self.widthMin)))
      widths[widest] -= step
      excess -= step
    }
    return widths
  }

  private func isRightAligned(_ index: Int) -> Bool {
    switch columns[index].alignment {
    case .left: return false
    case .right: return true
    case .automatic:
      let filled = rows.lazy.map { $0[index] }.filter { !$0.isEmpty }
      return !filled.isEmpty && filled.allSatisfy(\.isNumber)
    }
  }
}

extension String {
  fileprivate var trimmingTrailingSpaces: String {
    var text = self[...]
    while let start = text.start(before: " ") { text = start }
    return String(text)
  }

  /// Digits, perhaps with a sign, one point, grouping commas or a percent sign.
  fileprivate var isNumber: Bool {
    var digits = 0
    var points = 0
    for (index, byte) in utf8.enumerated() {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digits += 1
      case UInt8(ascii: "-") where index == 0, UInt8(ascii: ",") where digits > 0: break
      case UInt8(ascii: ".") where points == 0: points = 1
      case UInt8(ascii: "%") where digits > 0 && index == utf8.count - 1: break
      default: return false
      }
    }
    return digits > 0
  }
}

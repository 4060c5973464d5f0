/// Amounts as horizontal bars of block characters, for output that is easier to see than to read.
package struct BarPlot: Sendable, Equatable {
  /// One bar.
  package struct Bar: Sendable, Equatable {
    /// Printed before the bar.
    package var label: String
    /// The length; negative and non-finite values draw no bar.
    package var value: Double
    /// Printed after the bar, such as the amount with its unit.
    package var note: String

    /// Creates a bar; see the properties.
    package init(_ label: String, _ value: Double, note: String = "") {
      self.label = label
      self.value = value
      self.note = note
    }
  }

  /// From top to bottom.
  package var bars: [Bar]

  /// One eighth to eight eighths of a column, from the left.
  static let eighths: [Character] = Array("▏▎▍▌▋▊▉█")

  /// Creates a plot; all bars share one scale.
  package init(_ bars: [Bar]) {
    self.bars = bars
  }

  /// Returns the lines in at most `width` columns: label, bar, note. The longest bar takes all the
  /// room.
  package func lines(width: Int = 80) -> [String] {
    let labels = bars.map { $0.label.escapedForTerminal.truncated(toWidth: max(1, width / 3)) }
    let notes = bars.map { $0.note.escapedForTerminal.truncated(toWidth: max(1, width / 3)) }
    let left = labels.map(\.displayWidth).max() ?? 0
    let right = notes.map(\.displayWidth).max() ?? 0
    let room = max(1, width - left - right - 2)
    let largest = bars.map { Self.drawable($0.value) }.max() ?? 0
    return bars.indices.map { index in
      let share = largest > 0 ? Self.drawable(bars[index].value) / largest : 0
      let bar = Self.bar(eighths: Int((share * Double(room * 8)).rounded()))
      let line = labels[index].padded(toWidth: left) + " " + bar
      return notes[index].isEmpty ? line : line + " " + notes[index]
    }
  }

  private static func bar(eighths count: Int) -> String {
    let part = count % 8 == 0 ? "" : String(eighths[count % 8 - 1])
    return String(repeating: "█", count: count / 8) + part
  }

  private static func drawable(_ value: Double) -> Double { value.isFinite ? max(0, value) : 0 }
}

/// Amounts as horizontal bars of block characters, for output easier to see than to read.
package struct BarPlot: Sendable, Equatable {
  /// One bar.
  package struct Bar: Sendable, Equatable {
    /// Printed before the bar.
    package var label: String
    /// The length; negative and non-finite values draw no bar.
    package var value: Double
    /// Printed after the bar, such as the amount with a unit.
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

  /// Creates a plot; all bars share one scale.
  package init(_ bars: [Bar]) {
    self.bars = bars
  }

  /// Returns the lines in at most `width` columns: label, bar, note. The longest bar takes all the
  /// room.
  package func lines(width: Int = 80, with glyphs: Glyphs = .current) -> [String] {
    func cut(_ text: String) -> String {
      text.escapedForTerminal.truncated(toWidth: max(1, width / 3), with: glyphs)
    }
    let labels = bars.map { cut($0.label) }
    let notes = bars.map { cut($0.note) }
    let left = labels.map(\.displayWidth).max() ?? 0
    let right = notes.map(\.displayWidth).max() ?? 0
    let room = max(1, width - left - right - 2)
    let largest = bars.map { Self.drawable($0.value) }.max() ?? 0
    return bars.indices.map { index in
      let share = largest > 0 ? Self.drawable(bars[index].value) / largest : 0
      let bar = glyphs.bar(eighths: Int((share * Double(room * 8)).rounded()))
      let line = labels[index].padded(toWidth: left) + " " + bar
      return notes[index].isEmpty ? line : line + " " + notes[index]
    }
  }

  private static func drawable(_ value: Double) -> Double { value.isFinite ? max(0, value) : 0 }
}

/// The verdict, the command to run it again, the violations and the figures. Plain HTML.
struct ReportSummary {
  let content: ReportContent
  let moments: [ReportData.Moment?]
  /// Microseconds of virtual time at the first event.
  let start: Int64

  /// The figures and the options, for the end of the page.
  var figures: String {
    "<div class=\"summary\">\n" + bars("What it did", content.figures, id: "figures")
      + bars("Faults injected", content.faults, id: "faults") + "</div>\n" + options
  }

  private var passed: Bool { content.violations.isEmpty }

  /// The top of the page.
  var header: String {
    let count = content.violations.count
    let outcome = passed ? "Passed" : "Failed"
    let found =
      passed
      ? "Every oracle holds."
      : count == 1 ? "One violation." : "\(Self.grouped(count)) violations."
    return """
      <header class="\(passed ? "passed" : "failed")">
      <div class="outcome">
      <p class="kicker">Ferry simulation · seed \(content.seed)</p>
      <h1 id="verdict" data-verdict="\(passed ? "passed" : "failed")">\(outcome)</h1>
      <p class="found">\(found)\(passed ? "" : " <a href=\"#violations\" data-action=\"show-violations\">Read</a>")</p>
      </div>
      <div class="again">
      <div class="replay"><h2>Run it again</h2>
      <code id="replay">\(content.replayCommand.escapedForHTML)</code>
      <button type="button" data-action="copy-replay">Copy</button></div>
      <p class="hash">Trace <code>\(content.traceHash.escapedForHTML)</code>
      · \(Self.grouped(content.events.count)) events in \(duration)</p>
      </div>
      </header>

      """
  }

  /// The violations with links to their moments; empty for a passed run.
  var violations: String {
    if passed { return "" }
    let items = zip(content.violations, moments).map { text, moment in
      let link = moment.map {
        " <a href=\"#event=\($0.event)\" data-event=\"\($0.event)\">Show the moment, "
          + "\(VirtualTime.text($0.at))</a>"
      }
      return "<li><span>\(text.escapedForHTML)</span>\(link ?? "")</li>\n"
    }
    return """
      <section class="violations" aria-labelledby="violations-heading">
      <h2 id="violations-heading">Violations</h2>
      <ol id="violations">
      \(items.joined())</ol>
      </section>

      """
  }

  private func bars(_ title: String, _ figures: [(name: String, value: Int)], id: String) -> String
  {
    if figures.isEmpty { return "" }
    let longest = max(1, figures.map(\.value).max() ?? 1)
    let items = figures.map { name, value in
      // Per mille, so the bytes do not depend on how a fraction prints.
      let share = max(0, value) * 1000 / longest
      let isNone = value <= 0 ? " class=\"none\"" : ""
      return "<div\(isNone)><dt>\(Self.words(name).escapedForHTML)</dt><dd><span class=\"bar\" "
        + "style=\"--share: \(share)\"></span>\(Self.grouped(value))</dd></div>\n"
    }
    return """
      <section aria-labelledby="\(id)-heading">
      <h2 id="\(id)-heading">\(title)</h2>
      <dl id="\(id)" class="bars">
      \(items.joined())</dl>
      </section>

      """
  }

  private var options: String {
    if content.options.isEmpty { return "" }
    let items = content.options.map { name, value in
      "<div><dt>\(name.escapedForHTML)</dt><dd>\(value.escapedForHTML)</dd></div>\n"
    }
    return """
      <section aria-labelledby="options-heading">
      <details class="options">
      <summary><h2 id="options-heading">Options (\(content.options.count))</h2></summary>
      <dl id="options">
      \(items.joined())</dl>
      </details>
      </section>

      """
  }

  private var duration: String {
    let end = content.events.map(\.at).max() ?? start
    return VirtualTime.text(end - min(start, 0)) + " of virtual time"
  }

  /// Returns `lostPower` as words.
  private static func words(_ name: String) -> String {
    name.reduce(into: "") { text, letter in
      text +=
        letter.isUppercase && text.last?.isLowercase == true
        ? " " + letter.lowercased() : String(letter)
    }
  }

  /// Returns a number as `12,345`.
  static func grouped(_ value: Int) -> String {
    var result: [Character] = []
    for (index, digit) in String(value.magnitude).reversed().enumerated() {
      if index > 0 && index % 3 == 0 { result.append(",") }
      result.append(digit)
    }
    return (value < 0 ? "−" : "") + String(result.reversed())
  }
}

/// Virtual time for people.
enum VirtualTime {
  /// Returns `3 d 4:05:06.789`, `1:02.500`: minutes and seconds always, hours and days if there are
  /// any.
  static func text(_ microseconds: Int64) -> String {
    let milliseconds = microseconds.magnitude / 1000
    let (seconds, minutes) = (milliseconds / 1000, milliseconds / 60_000)
    let (hours, days) = (minutes / 60, minutes / 1440)
    let small = padded(seconds % 60, 2) + "." + padded(milliseconds % 1000, 3)
    let sign = microseconds < 0 ? "−" : ""
    if days > 0 { return "\(sign)\(days) d \(hours % 24):\(padded(minutes % 60, 2)):\(small)" }
    if hours > 0 { return "\(sign)\(hours):\(padded(minutes % 60, 2)):\(small)" }
    return "\(sign)\(minutes):\(small)"
  }

  private static func padded(_ value: UInt64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

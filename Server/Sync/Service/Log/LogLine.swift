import FerryProtocol

/// One line of the log: a JSON object. Members stay in order. Values from elsewhere are escaped and
/// cut, so no caller can forge a line or fill the log with it.
struct LogLine {
  private var json = JSONWriter(capacity: 256)

  /// - Parameter wall: Milliseconds since 1970.
  init(_ level: LogLevel, _ message: StaticString, wall: Int64) {
    json.beginObject()
    json.member("time", RFC3339.text(milliseconds: wall))
    json.member("level", level.rawValue)
    json.member("message", message.description)
  }

  mutating func add(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    json.key(name)
    json.raw(LogText.json(value))
  }

  mutating func add(_ name: StaticString, _ value: Int) {
    json.member(name, value)
  }

  /// Adds milliseconds with three digits after the point.
  mutating func add(_ name: StaticString, milliseconds duration: Duration) {
    json.key(name)
    let (seconds, attoseconds) = duration.components
    let microseconds = max(0, seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
    json.number(microseconds / 1_000)
    json.raw(".")
    let digits = String(microseconds % 1_000 + 1_000).dropFirst()
    json.raw(digits.utf8)
  }

  /// Returns the line with a newline.
  consuming func finish() -> [UInt8] {
    json.endObject()
    json.raw("\n")
    return json.finish()
  }
}

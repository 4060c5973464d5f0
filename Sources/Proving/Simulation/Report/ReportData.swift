/// A run's events as the page carries them: a column for each property, texts by their numbers.
///
/// 100,000 events take about 2 MB, and the browser reads them without building an object for each.
struct ReportData {
  /// The time of the first event, in microseconds.
  let start: Int64
  private let events: [TraceEvent]
  private var actors = NumberedTexts()
  private var details = NumberedTexts()
  private var messages: [Int64] = []
  private var columns = Columns()

  /// One array for each property of an event; -1 for none.
  private struct Columns {
    /// Microseconds since the event before.
    var at: [Int64] = []
    var actor: [Int64] = []
    var kind: [Int64] = []
    var peer: [Int64] = []
    var message: [Int64] = []
    var detail: [Int64] = []
    /// A row for each lost value: the event, and the numbers of five texts.
    var lostEvent: [Int64] = []
    var lostText: [Int64] = []
    var lostAsked: [Int64] = []
  }

  init(_ content: ReportContent) {
    events = content.events.enumerated()
      .sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    start = events.first?.at ?? 0
    for actor in content.actors { _ = actors.number(of: actor) }
    var previous: Int64 = 0
    var numbers: [Int: Int64] = [:]
    for event in events {
      columns.at.append(event.at - previous)
      previous = event.at
      columns.actor.append(actors.number(of: event.actor))
      columns.kind.append(Self.number(of: event.kind))
      columns.peer.append(event.peer.map { actors.number(of: $0) } ?? -1)
      columns.detail.append(details.number(of: event.detail))
      for value in event.lost { add(value, of: columns.detail.count - 1) }
      guard let message = event.message else {
        columns.message.append(-1)
        continue
      }
      let number = numbers[message] ?? Int64(messages.count)
      if number == messages.count {
        numbers[message] = number
        messages.append(Int64(message))
      }
      columns.message.append(number)
    }
  }

  private mutating func add(_ value: LostValue, of event: Int) {
    columns.lostEvent.append(Int64(event))
    columns.lostAsked.append(value.isQuestion ? 1 : 0)
    for text in [
      value.place, value.lost.value, value.lost.author, value.won.value, value.won.author,
    ] {
      columns.lostText.append(details.number(of: text))
    }
  }

  /// Writes a JSON object.
  func write(to page: inout MarkupWriter) {
    page.write("{")
    page.write(key: "actors")
    page.write(json: actors.texts)
    page.write(key: "kinds")
    page.write(json: TraceEvent.Kind.allCases.map(\.rawValue))
    page.write(key: "details")
    page.write(json: details.texts)
    let arrays: [(String, [Int64])] = [
      ("messages", messages), ("at", columns.at), ("actor", columns.actor),
      ("kind", columns.kind), ("peer", columns.peer), ("message", columns.message),
      ("detail", columns.detail), ("lostEvent", columns.lostEvent),
      ("lostText", columns.lostText), ("lostAsked", columns.lostAsked),
    ]
    for (name, numbers) in arrays {
      page.write(key: name)
      page.write(json: numbers)
    }
    page.write("}")
  }

  /// Where the event of a violation is among the sorted events.
  struct Moment { var event: Int, at: Int64 }

  /// Returns the moment of each violation, found by its text, or by its place if each has an event.
  func moments(of violations: [String]) -> [Moment?] {
    let found = events.indices.filter { events[$0].kind == .violation }
    var free = found
    return violations.enumerated().map { place, text in
      let match =
        free.firstIndex { text == events[$0].detail }
        ?? free.firstIndex { !events[$0].detail.isEmpty && text.contains(events[$0].detail) }
      if let match {
        let event = free.remove(at: match)
        return Moment(event: event, at: events[event].at)
      }
      guard found.count == violations.count else { return nil }
      return Moment(event: found[place], at: events[found[place]].at)
    }
  }

  private static func number(of kind: TraceEvent.Kind) -> Int64 { kindNumbers[kind] ?? -1 }

  private static let kindNumbers = Dictionary(
    uniqueKeysWithValues: TraceEvent.Kind.allCases.enumerated().map { ($1, Int64($0)) })
}

/// Texts in the order of their first appearance, each once.
private struct NumberedTexts {
  private(set) var texts: [String] = []
  /// By bytes: two texts that only look the same stay two.
  private var numbers: [[UInt8]: Int64] = [:]

  mutating func number(of text: String) -> Int64 {
    let bytes = Array(text.utf8)
    if let number = numbers[bytes] { return number }
    let number = Int64(texts.count)
    texts.append(text)
    numbers[bytes] = number
    return number
  }
}

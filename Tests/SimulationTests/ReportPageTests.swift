import FerrySimulation
import FerryTestSupport
import Foundation
import Testing

@Suite("The report page", .hangLimit)
struct ReportPageTests {
  /// Texts that break pages without escapes.
  static let hostileTexts = [
    "</script><script>document.title = 'owned'</script>", "<!-- <script> -->",
    "\"quoted\" 'single' \\ backslash", "line\u{2028}and\u{2029}paragraph",
    "\u{0}\u{1}\u{7F}\u{FEFF} controls\nand\tspace", "emoji 👩🏽‍🚀 and &amp; entity",
    "right \u{202E}to left", "e\u{301}", "\u{E9}",
  ]

  @Test("the page contains every event, in order of time")
  func carriesEvents() throws {
    var content = ReportSample.content()
    content.events = Array(content.events.reversed())
    let data = try ReportPageData(ReportPage.html(content))
    // Of two at one time the first stays first; the sample has no such pair.
    #expect(data.events == ReportSample.events)
    #expect(data.actors == ["device-1", "device-2", "server", "world"])
  }

  @Test("events at one time stay in their order")
  func stableOrder() throws {
    var content = ReportSample.content(violations: [])
    content.events = (0..<100).map {
      TraceEvent(at: 5, actor: "device-1", kind: .read, message: 1 << 60, detail: "\($0)")
    }
    let data = try ReportPageData(ReportPage.html(content))
    #expect(data.events == content.events)
  }

  @Test("the same content gives the same bytes")
  func deterministic() {
    let pages = (0..<3).map { _ in ReportPage.html(ReportSample.content()) }
    #expect(Set(pages).count == 1)
  }

  @Test("no text breaks out of the script or the markup", arguments: hostileTexts)
  func escapes(text: String) throws {
    var content = ReportSample.content()
    content.events.append(
      TraceEvent(at: 9_000_000, actor: text, kind: .read, peer: text, detail: text))
    let side = LostValue.Side(value: text, author: text)
    content.events[content.events.count - 1].lost = [
      LostValue(place: text, lost: side, won: side)
    ]
    content.violations.append(text)
    content.replayCommand = text
    content.traceHash = text
    content.options.append((text, text))
    content.faults.append((text, 3))
    let page = ReportPage.html(content)
    #expect(try ReportPageData(page).events.last == content.events.last)
    let markup = String(decoding: page, as: UTF8.self)
    let plain = String(decoding: ReportPage.html(ReportSample.content()), as: UTF8.self)
    for tag in ["<script", "</script", "<!--", "\u{2028}", "\u{0}"] {
      let before = plain.components(separatedBy: tag).count
      let isInHTML = tag == "\u{2028}" && text.contains(tag)
      #expect(isInHTML || markup.components(separatedBy: tag).count == before)
    }
  }

  @Test("the page loads nothing")
  func selfContained() {
    let page = String(decoding: ReportPage.html(ReportSample.content()), as: UTF8.self)
    for outside in ["http:", "https:", " src=", "@import", "url(", "<link", "fetch(", "import("] {
      #expect(!page.contains(outside), "\(outside)")
    }
    #expect(page.contains("content=\"default-src 'none';"))
  }

  @Test("the summary contains the verdict, the figures and the command, without a script")
  func summary() {
    let failed = String(decoding: ReportPage.html(ReportSample.content()), as: UTF8.self)
    #expect(failed.contains("data-verdict=\"failed\">Failed<"))
    #expect(failed.contains("<title>Seed 42 failed"))
    #expect(failed.contains("ferry-sim replay 42 --devices 2 --profile hostile</code>"))
    #expect(failed.contains("href=\"#event=17\" data-event=\"17\">Show the moment, 0:02.500<"))
    #expect(failed.contains("style=\"--share: 1000\"></span>1,234</dd>"))
    #expect(failed.contains("<div class=\"none\"><dt>lost power</dt>"))
    let passed = String(
      decoding: ReportPage.html(ReportSample.content(violations: [])), as: UTF8.self)
    #expect(passed.contains("data-verdict=\"passed\">Passed<"))
    #expect(!passed.contains("id=\"violations\""))
  }

  @Test("a violation is linked to the event that has its text, or to none")
  func moments() {
    func links(_ violations: [String]) -> [String] {
      let page = String(
        decoding: ReportPage.html(ReportSample.content(violations: violations)), as: UTF8.self)
      return page.components(separatedBy: "<li><span>").dropFirst().map {
        $0.components(separatedBy: "</li>")[0].contains("#event=17") ? "linked" : "plain"
      }
    }
    #expect(links(["convergence: differs", ReportSample.violation]) == ["plain", "linked"])
    #expect(links(["in seed 42, " + ReportSample.violation, "more"]) == ["linked", "plain"])
    #expect(links(["other words for the only one"]) == ["linked"])
  }

  @Test("the script has a style for every kind of event", arguments: TraceEvent.Kind.allCases)
  func looks(kind: TraceEvent.Kind) {
    let page = String(decoding: ReportPage.html(ReportSample.content()), as: UTF8.self)
    #expect(page.contains("\n  \(kind.rawValue): { group:"))
  }

  @Test("a run without events has a page too")
  func nothing() throws {
    let content = ReportContent(
      seed: .max, replayCommand: "", options: [], actors: [], events: [], violations: [],
      figures: [], traceHash: "")
    #expect(try ReportPageData(ReportPage.html(content)).events.isEmpty)
  }

  @Test("100,000 events take less than 3 MB")
  func compact() throws {
    let page = ReportPage.html(ReportSample.crowd(devices: 20, events: 100_000))
    #expect(page.count < 3_000_000)
    #expect(try ReportPageData(page).events.count == 100_000)
  }
}

/// The data of a page, read independently of the page's writer.
struct ReportPageData {
  let actors: [String]
  let events: [TraceEvent]

  private struct Columns: Decodable {
    let actors, kinds, details: [String]
    let messages, at, actor, kind, peer, message, detail: [Int]
    let lostEvent, lostText, lostAsked: [Int]

    func lost(of event: Int) -> [LostValue] {
      lostEvent.indices.filter { lostEvent[$0] == event }.map { row in
        let texts = lostText[row * 5..<row * 5 + 5].map { details[$0] }
        return LostValue(
          place: texts[0], lost: .init(value: texts[1], author: texts[2]),
          won: .init(value: texts[3], author: texts[4]), isQuestion: lostAsked[row] == 1)
      }
    }
  }

  init(_ page: [UInt8]) throws {
    let text = String(decoding: page, as: UTF8.self)
    let opening = "<script type=\"application/json\" id=\"run-data\">"
    let json = try #require(text.components(separatedBy: opening).last)
      .components(separatedBy: "</script>")[0]
    let columns = try JSONDecoder().decode(Columns.self, from: Data(json.utf8))
    actors = columns.actors
    var time = 0
    events = try columns.at.indices.map { place in
      time += columns.at[place]
      let kind = try #require(TraceEvent.Kind(rawValue: columns.kinds[columns.kind[place]]))
      let (peer, message) = (columns.peer[place], columns.message[place])
      var event = TraceEvent(
        at: Int64(time), actor: columns.actors[columns.actor[place]], kind: kind,
        peer: peer < 0 ? nil : columns.actors[peer],
        message: message < 0 ? nil : columns.messages[message],
        detail: columns.details[columns.detail[place]])
      event.lost = columns.lost(of: place)
      return event
    }
  }
}

import FerryNetworking
import FerryTestSupport
import Testing

@Suite("Parsing server-sent events", .hangLimit)
struct ServerSentEventParserTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let what: String
    let stream: String
    let events: [ServerSentEvent]
    var testDescription: String { what }
  }

  static let rows = [
    Row(what: "nothing at all", stream: "", events: []),
    Row(what: "one line of data", stream: "data: a\n\n", events: [.init(data: "a")]),
    Row(what: "no blank after the colon", stream: "data:a\n\n", events: [.init(data: "a")]),
    Row(what: "one blank removed only", stream: "data:  a\n\n", events: [.init(data: " a")]),
    Row(what: "several lines", stream: "data: a\ndata: b\n\n", events: [.init(data: "a\nb")]),
    Row(what: "empty lines of data", stream: "data\ndata:\n\n", events: [.init(data: "\n")]),
    Row(what: "a single empty data line", stream: "data\n\n", events: [.init(data: "")]),
    Row(what: "carriage returns", stream: "data: a\rdata: b\r\r", events: [.init(data: "a\nb")]),
    Row(what: "both", stream: "data: a\r\ndata: b\r\n\r\n", events: [.init(data: "a\nb")]),
    Row(
      what: "all three line ends at once", stream: "data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\n",
      events: [.init(data: "a\nb\nc"), .init(data: "d")]),
    Row(what: "a comment", stream: ": hello\n\ndata: a\n\n", events: [.init(data: "a")]),
    Row(what: "a bare colon", stream: ":\n\n", events: []),
    Row(
      what: "a type", stream: "event: head\ndata: 5\n\n", events: [.init(event: "head", data: "5")]),
    Row(
      what: "a type for one event only", stream: "event: x\ndata: a\n\ndata: b\n\n",
      events: [.init(event: "x", data: "a"), .init(data: "b")]),
    Row(
      what: "a type without data, forgotten", stream: "event: x\n\ndata: b\n\n",
      events: [.init(data: "b")]),
    Row(
      what: "an id that stays", stream: "id: 7\ndata: a\n\ndata: b\n\n",
      events: [.init(id: "7", data: "a"), .init(id: "7", data: "b")]),
    Row(
      what: "an id taken back", stream: "id: 7\ndata: a\n\nid\ndata: b\n\n",
      events: [.init(id: "7", data: "a"), .init(data: "b")]),
    Row(
      what: "an id with U+0000, ignored", stream: "id: 7\nid: 8\0\ndata: a\n\n",
      events: [.init(id: "7", data: "a")]),
    Row(what: "an unknown field", stream: "what: x\ndata: a\n\n", events: [.init(data: "a")]),
    Row(what: "field names with case", stream: "Data: x\ndata: a\n\n", events: [.init(data: "a")]),
    Row(what: "a byte order mark", stream: "\u{FEFF}data: a\n\n", events: [.init(data: "a")]),
    Row(
      what: "a second mark, not removed", stream: "\u{FEFF}\u{FEFF}data: x\n\ndata: a\n\n",
      events: [.init(data: "a")]),
    Row(what: "an event without its end", stream: "data: a\n", events: []),
    Row(what: "colons in the data", stream: "data: a:b: c\n\n", events: [.init(data: "a:b: c")]),
    Row(
      what: "more than ASCII", stream: "id: é\nevent: 🛳\ndata: fährt – 渡し\n\n",
      events: [.init(id: "é", event: "🛳", data: "fährt – 渡し")]),
  ]

  @Test("events are parsed by the standard", arguments: rows)
  func table(row: Row) throws {
    var parser = ServerSentEventParser()
    #expect(try parser.feed(Array(row.stream.utf8)) == row.events)
  }

  @Test("events are parsed alike with any splits of the stream", arguments: rows)
  func everySplit(row: Row) throws {
    let bytes = Array(row.stream.utf8)
    for split in 0...bytes.count {
      var parser = ServerSentEventParser()
      let events = try parser.feed(Array(bytes[..<split])) + parser.feed(Array(bytes[split...]))
      #expect(events == row.events, "split at \(split)")
    }
    var parser = ServerSentEventParser()
    #expect(try bytes.flatMap { try parser.feed([$0]) } == row.events)
  }

  @Test("a retry field is read if it consists of digits only")
  func retry() throws {
    var parser = ServerSentEventParser()
    #expect(try parser.feed(Array("retry: 1500\n".utf8)) == [])
    #expect(parser.reconnectionDelay == .milliseconds(1500))
    #expect(try parser.feed(Array("retry: 2s\nretry:\nretry: -1\n".utf8)) == [])
    #expect(parser.reconnectionDelay == .milliseconds(1500))
  }

  @Test("an id counts from the blank line on, with or without data")
  func lastEventID() throws {
    var parser = ServerSentEventParser()
    _ = try parser.feed(Array("id: 3\n".utf8))
    #expect(parser.lastEventID == "")
    _ = try parser.feed(Array("\n".utf8))
    #expect(parser.lastEventID == "3")
  }

  @Test("an event's size is bounded")
  func limit() throws {
    var parser = ServerSentEventParser(eventLimit: 16)
    #expect(try parser.feed(Array("data: 0123456789\n\n".utf8)).count == 1)
    #expect(try parser.feed(Array("data: 0123456789\n\n".utf8)).count == 1)
    #expect { try parser.feed(Array("data: 0123456789a".utf8)) } throws: {
      ($0 as? TransportError)?.kind == .responseTooLarge
    }
  }
}

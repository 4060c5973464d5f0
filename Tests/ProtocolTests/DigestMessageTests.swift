import FerryProtocol
import FerryTestSupport
import Testing

/// The messages by which trees are compared.
@Suite("Messages about digests", .hangLimit)
struct DigestMessageTests {
  private static let cursor = Cursor(epoch: Epoch(0x5F3C_9A1B_E2D4_0718), applied: 13)

  @Test(
    "queries are read and written back byte for byte", arguments: ["query-tables", "query-nodes"])
  func queries(name: String) throws {
    let bytes = try ProjectFiles.fixture("digests/\(name)")
    let query = try DigestQuery(decoding: bytes, limits: .standard)
    #expect(query.encoded() == bytes)
    #expect(query.cursor == Self.cursor)
    #expect(query.table == (name == "query-nodes" ? "tasks" : nil))
    #expect(query.nodes.count == (name == "query-nodes" ? 5 : 0))
  }

  @Test(
    "answers are read and written back byte for byte", arguments: ["behind", "tables", "nodes"])
  func answers(name: String) throws {
    let bytes = try ProjectFiles.fixture("digests/\(name)")
    let answer = try DigestAnswer(decoding: bytes, limits: .standard)
    #expect(answer.encoded() == bytes)
    switch (name, answer.content) {
    case ("behind", .behind): #expect(answer.folded == 7)
    case ("tables", .tables(let tables)): #expect(tables.map(\.records) == [2, 1])
    case ("nodes", .nodes(let nodes)):
      #expect(nodes.map(\.node.description) == ["", "0ba2"])
      guard case .children(let children) = nodes[0].digests,
        case .records(let records) = nodes[1].digests
      else { return #expect(Bool(false), "\(nodes)") }
      #expect(children.count == 16 && children[1] == .zero)
      #expect(records.map(\.digest) == [children[0]])
    default: Issue.record("\(name): \(answer)")
    }
  }

  @Test(
    "a message that breaks a rule is refused",
    arguments: [
      #"{"table":"tasks","nodes":[""]}"#, #"{"cursor":"1","nodes":[""]}"#,
      #"{"cursor":"5f3c9a1be2d40718.1.1","nodes":[""]}"#,
      #"{"cursor":"5f3c9a1be2d40718.1.1","table":"tasks"}"#,
      #"{"cursor":"5f3c9a1be2d40718.1.1","table":"tasks","nodes":["A"]}"#,
      #"{"cursor":"5f3c9a1be2d40718.1.1","table":"tasks","nodes":["1","1"]}"#,
      #"{"cursor":"5f3c9a1be2d40718.1.1","table":"tasks","nodes":["12ab","13","12"]}"#,
      #"{"cursor":"5f3c9a1be2d40718.1.1","table":"tasks","nodes":["","3"]}"#,
      #"{"cursor":"5f3c9a1be2d40718.1.1","table":"tasks","nodes":["00000"]}"#,
      #"{"cursor":"5f3c9a1be2d40718.1.1","table":"","nodes":["0"]}"#,
    ])
  func badQueries(json: String) {
    #expect(throws: MalformedMessage.self) {
      try DigestQuery(decoding: Array(json.utf8), limits: .standard)
    }
  }

  @Test("questions and answers about the rest of a list are read and written back")
  func rest() throws {
    let (leaf, other) = (DigestNode.leaf(7), DigestNode(depth: 1, prefix: 5))
    for query in [
      DigestQuery(cursor: Self.cursor, after: "tasks"),
      DigestQuery(cursor: Self.cursor, table: "tasks", nodes: [leaf, other], after: "a\u{1}"),
    ] {
      #expect(try DigestQuery(decoding: query.encoded(), limits: .standard) == query)
    }
    let inner = DigestQuery(cursor: Self.cursor, table: "tasks", nodes: [other, leaf], after: "a")
    #expect(throws: MalformedMessage.self) {
      try DigestQuery(decoding: inner.encoded(), limits: .standard)
    }
    let record = NodeDigests.RecordDigest(record: "a", digest: .zero)
    let table = DigestAnswer.TableDigest(table: "tasks", records: 1, digest: .zero)
    let children = DigestAnswer.Node(
      node: .root, digests: .children([Digest](repeating: .zero, count: 16)))
    for (content, isRead) in [
      (.tables([table]), true),
      (.nodes([children, DigestAnswer.Node(node: leaf, digests: .records([record]))]), true),
      (.tables([]), false), (.behind, false), (.nodes([children]), false),
      (.nodes([DigestAnswer.Node(node: leaf, digests: .records([]))]), false),
    ] as [(DigestAnswer.Content, Bool)] {
      let answer = DigestAnswer(
        epoch: Epoch(7), head: 9, folded: 9, content: content, more: true)
      let read = try? DigestAnswer(decoding: answer.encoded(), limits: .standard)
      #expect(read == (isRead ? answer : nil), "\(content)")
    }
  }

  @Test("the number of nodes in a query is bounded")
  func tooManyNodes() throws {
    let nodes = (0...DigestQuery.nodesMax).map { DigestNode.leaf($0) }
    let most = DigestQuery(
      cursor: Self.cursor, table: "t", nodes: Array(nodes.prefix(DigestQuery.nodesMax)))
    #expect(try DigestQuery(decoding: most.encoded(), limits: .standard) == most)
    let more = DigestQuery(cursor: Self.cursor, table: "t", nodes: nodes)
    #expect(throws: MalformedMessage.self) {
      try DigestQuery(decoding: more.encoded(), limits: .standard)
    }
  }

  @Test(
    "an answer that does not fit its node is refused",
    arguments: [
      #"{"node":"0","children":[null]}"#, #"{"node":"0","records":[]}"#,
      #"{"node":"0ba2","children":[]}"#, #"{"node":"0ba2"}"#, #"{"records":[]}"#,
      #"{"node":"0ba2","records":[["a"]]}"#, #"{"node":"0ba2","records":[["a","12"]]}"#,
    ])
  func badAnswers(node: String) {
    let json = #"{"epoch":"5f3c9a1be2d40718","head":"1","folded":"1","nodes":[\#(node)]}"#
    #expect(throws: MalformedMessage.self) {
      try DigestAnswer(decoding: Array(json.utf8), limits: .standard)
    }
  }
}

import FerryProtocol
import FerryTestSupport
import Testing

/// Keeps Protocol/SPEC.md and Protocol/openapi.yaml from trailing the code.
@Suite("The specification", .hangLimit)
struct SpecificationTests {
  struct Invariant {
    var number: Int
    var sentence: String
    /// The place of the test.
    var test: (target: String, file: String, name: String)
  }

  @Test("invariants are sentences, numbered without a gap")
  func numbering() throws {
    let invariants = try Self.invariants()
    #expect(invariants.count > 50)
    #expect(invariants.map(\.number) == Array(1...invariants.count))
    for invariant in invariants {
      #expect(invariant.sentence.hasSuffix("."), "I-\(invariant.number)")
    }
  }

  @Test("each invariant names a test that exists")
  func tests() throws {
    for invariant in try Self.invariants() {
      let test = invariant.test
      let path = "Tests/\(test.target)/\(test.file).swift"
      try #require(ProjectFiles.exists(path), "I-\(invariant.number): there is no \(path)")
      #expect(
        try Self.hasTest(test.name, in: ProjectFiles.text(path)),
        "I-\(invariant.number): \(path) has no test \"\(test.name)\"")
    }
  }

  @Test("the specification's table of errors equals the one in the code")
  func errors() throws {
    let rows = try Self.tableRows(startingWith: "| `").filter { $0.count == 4 }
    let expected = ProblemCode.allCases.map {
      ["`\($0.rawValue)`", String($0.status), $0.action.rawValue]
    }
    #expect(Set(rows.map { Array($0.prefix(3)) }) == Set(expected))
    #expect(rows.count == expected.count)
  }

  @Test("the specification's table of limits equals the one in the code")
  func limits() throws {
    let limits = Limits.standard
    let section = try #require(try Self.text().components("## 10 Limits").last)
    for value in [
      Self.grouped(limits.operationsPerPacket), "\(limits.packetBytesTarget >> 20) MiB /",
      "/ \(limits.messageBytes >> 20) MiB",
      "\(limits.valueBytes >> 20) MiB / "
        + "\(limits.operationBytes >> 20) MiB", "| \(Self.grouped(limits.columns)) |",
      "| bytes of an operation's reason (§15) | \(Self.grouped(limits.reasonBytes)) |",
      "\(limits.nameBytes) / \(limits.recordBytes)", "| \(limits.depth) |",
      "`too_many_tables`) | \(Self.grouped(limits.tables)) |",
      "`too_many_columns`) | \(Self.grouped(limits.tableColumns)) |",
      "\(limits.recordStateBytes >> 20) MiB / \(Self.grouped(limits.recordColumns))",
      "\(limits.packetStateBytes >> 20) MiB |",
      "they have \((limits.noticeBytes + (1 << 20) - 1) >> 20) MiB at most",
      "larger than \((limits.answerBytes + (1 << 20) - 1) >> 20) MiB",
      "\(limits.bufferedPackets) / \(limits.bufferedBytes >> 20) MiB",
      "\(Self.grouped(limits.operationsPerTransaction)) / \(limits.transactionBytes >> 20) MiB",
      "| records that an answer about digests lists (§16) | \(Self.grouped(limits.digestsPerAnswer)) |",
      "| records asked for at once (§15) | \(Self.grouped(limits.recordsPerRequest)) |",
      "| \(Limits.deviceNameCharacters) / \(Self.grouped(limits.devicesPerRequest)) |",
      "\(Self.grouped(limits.changesPerPage)); \(limits.pageBytes >> 20) MiB",
      "\(limits.clockSkewMax / 1_000) s",
      "\(limits.schemaBytes >> 10) KiB / \(Self.grouped(limits.schemaTables))",
      "\(Self.grouped(TextMerge.linesMax)) / \(Self.grouped(TextMerge.editsMax))",
      "\(limits.predicateDepth) / \(Self.grouped(limits.predicateNodes))",
      "packet (§14) | \(Self.grouped(limits.batchEvaluations)) |",
      "\(Self.grouped(limits.batchRecords)) / \(limits.batchBytes >> 20) MiB",
    ] {
      #expect(section.contains(value), "\(value)")
    }
  }

  @Test("the examples of the description of the endpoints are golden messages that exist")
  func examples() throws {
    let yaml = try ProjectFiles.text("Protocol/openapi.yaml")
    let paths = yaml.components("externalValue: ").dropFirst().map { part in
      String(part.prefix { !$0.isWhitespace && $0 != "}" })
    }
    #expect(paths.count > 20)
    for path in paths { #expect(ProjectFiles.exists("Protocol/\(path)"), "\(path)") }
    for code in ProblemCode.allCases {
      #expect(yaml.contains("problems/\(code.rawValue).json"), "\(code.rawValue)")
    }
  }

  @Test("each example equals its golden message, except for its line breaks")
  func goldenExamples() throws {
    var count = 0
    for part in try Self.text().components("](fixtures/").dropFirst() {
      let path = String(part.prefix { $0 != ")" })
      guard part.dropFirst(path.count).hasPrefix(")):\n\n```json\n") else { continue }
      let lines = String(part).components("```")[1].split(separator: "\n").dropFirst()
      let golden = try ProjectFiles.text("Protocol/fixtures/\(path)")
      #expect(lines.map(\.trimmed).joined() == golden[...].withoutLineBreak, "\(path)")
      count += 1
    }
    #expect(count > 25)
  }

  @Test("each member that the specification names is one of the codec")
  func members() throws {
    let text = try Self.text()
    var names = Set<String>()
    for table in text.matches(of: /\| member[^\n]*\n\|[-| ]+\n((\|[^\n]*\n)+)/) {
      for row in table.1.split(separator: "\n") {
        names.formUnion(Self.quoted(row.split(separator: "|")[0]))
      }
    }
    #expect(names.count > 80)
    // In sentences: "On the wire: `a`, `b`", "`a` and `b` on the wire", "the receipt's `a`".
    for sentence in text.matches(of: /[Oo]n the wire:(\s*`\w+`,?)+|(`\w+`(,| and)?\s+)+on the wire/)
    {
      names.formUnion(Self.quoted(sentence.0))
    }
    for sentence in text.matches(of: /receipt's\s+(`\w+`(,| and)?\s*)+/) {
      names.formUnion(Self.quoted(sentence.0))
    }
    // The server alone writes the lines of a feed.
    let codec =
      try Self.sources(in: "Protocol/FerryProtocol") + Self.sources(in: "Server/Sync/Store/Feed")
    // A status and a code are values.
    for name in names.sorted() where name != "buffered" && ProblemCode(rawValue: name) == nil {
      #expect(codec.contains("\"\(name)\""), "\(name)")
    }
  }

  // MARK: Reading

  private static func quoted(_ text: Substring) -> [String] {
    text.matches(of: /`(\w+)`/).map { String($0.1) }
  }

  private static func sources(in folder: String) throws -> String {
    try ProjectFiles.names(in: folder).map { name in
      let path = "\(folder)/\(name)"
      if name.hasSuffix(".swift") { return try ProjectFiles.text(path) }
      return name.contains(".") ? "" : try sources(in: path)
    }.joined()
  }

  private static func text() throws -> String { try ProjectFiles.text("Protocol/SPEC.md") }

  private static func invariants() throws -> [Invariant] {
    try text().split(separator: "\n").filter { $0.hasPrefix("- **I-") }.map { line in
      let parts = line.wholeMatch(of: /- \*\*I-(\d+)\*\* (.+?) — `(\w+)\/([\w+\/]+): "(.+)"`/)
      let found = try #require(parts, "\(line)")
      return Invariant(
        number: Int(found.1) ?? 0, sentence: String(found.2),
        test: (String(found.3), String(found.4), String(found.5)))
    }
  }

  /// Returns whether a source declares a test or a store's contract with this name.
  private static func hasTest(_ name: String, in source: String) -> Bool {
    ["@Test(", "StoreContract("].contains { opening in
      source.components(opening).dropFirst().contains { declaration in
        declaration.drop { $0.isWhitespace }.hasPrefix("\"\(name)\"")
      }
    }
  }

  /// Returns the cells of those lines.
  private static func tableRows(startingWith start: String) throws -> [[String]] {
    try text().split(separator: "\n").filter { $0.hasPrefix(start) }.map { line in
      line.split(separator: "|").map { $0.trimmed }
    }
  }

  private static func grouped(_ number: Int) -> String {
    number < 1_000
      ? "\(number)" : "\(grouped(number / 1_000)),\(String("00\(number % 1_000)".suffix(3)))"
  }
}

extension String {
  fileprivate func components(_ separator: String) -> [Substring] {
    split(separator: separator, omittingEmptySubsequences: false)
  }
}

extension Substring {
  fileprivate var trimmed: String {
    var text = drop { $0 == " " }
    while text.last == " " { text.removeLast() }
    return String(text)
  }

  /// Without the final line break.
  fileprivate var withoutLineBreak: String {
    last == "\n" ? String(dropLast()) : String(self)
  }
}

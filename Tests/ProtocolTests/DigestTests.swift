import FerryProtocol
import FerryTestSupport
import Testing

/// Digests, by which records and sets of records are compared.
@Suite("Digests", .hangLimit)
struct DigestTests {
  private static let key = RecordKey(table: "tasks", record: "a")

  static func digest(_ columns: [Column], of key: RecordKey = DigestTests.key) -> Digest {
    var hasher = RecordHasher()
    return hasher.digest(of: key, columns)
  }

  @Test("digests equal the specification's examples, which another implementation made")
  func golden() {
    #expect(Self.digest([]).description == "5796589f214382cb29d04c750b75f811")
    let two = [Column("title", "Buy milk"), Column("done", 0)]
    #expect(Self.digest(two).description == "2390e5c259616fd53b79ddf421543723")
    let record: Name = "0199c82c-0000-7000-8000-0000000000a1"
    let five =
      two + [
        Column("due", .null), Column("weight", 2.5),
        Column("photo", .blob([0x89, 0x50, 0x4E, 0x47])),
      ]
    let digest = Self.digest(five, of: RecordKey(table: "tasks", record: record))
    #expect(digest.description == "c3c19adde819bf42ca918fba639f8170")
    #expect(DigestNode.leaf(DigestNode.leaf(of: "a")).description == "0ba2")
    #expect(DigestNode.leaf(DigestNode.leaf(of: record)).description == "f567")
  }

  @Test("values of different class or bits have different digests")
  func values() {
    let values: [Value] = [
      .integer(0), .integer(1), .real(0), .real(-0.0), .real(1), "1", "", .blob([]), .blob([0x31]),
      "é", "e\u{301}", "\u{0}", .blob([0]), .integer(.min), .integer(.max), .real(.infinity),
    ]
    let digests = Set(values.map { Self.digest([Column("v", $0)]) })
    #expect(digests.count == values.count)
    #expect(!digests.contains(Self.digest([])))
  }

  @Test("a column that is NULL counts as one that was never written")
  func nulls() {
    let written = Self.digest([Column("a", .null), Column("b", 1), Column("c", .null)])
    #expect(written == Self.digest([Column("b", 1)]))
    #expect(Self.digest([Column("a", .null)]) == Self.digest([]))
  }

  @Test("the order of columns does not change a digest; their names and their record do")
  func names() {
    let columns = [Column("b", 1), Column("a", 2), Column("é", 3), Column("z", 4)]
    #expect(Self.digest(columns) == Self.digest(columns.reversed()))
    let others = [
      Self.digest([Column("ab", "c")]), Self.digest([Column("a", "bc")]),
      Self.digest([Column("ab", "c")], of: RecordKey(table: "tasks", record: "b")),
      Self.digest([Column("ab", "c")], of: RecordKey(table: "task", record: "sa")),
    ]
    #expect(Set(others).count == others.count)
  }

  @Test(
    "the digest of a state equals the digest of the row that a reader sees",
    arguments: UInt64(1)...200)
  func states(seed: UInt64) {
    var hasher = RecordHasher()
    for state in RecordStatePropertyTests.history(seed: seed) {
      let digest = Digest(of: Self.key, state, with: &hasher)
      let seen = state.row.map { row in
        Self.digest(row.map { Column($0.key, $0.value) })
      }
      #expect(digest == seen)
    }
  }

  @Test("sums do not depend on the order of records and changes", arguments: UInt64(1)...50)
  func anyOrder(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var rows: [Name: Int64] = [:]
    var sums = DigestSums()
    for _ in 0..<400 {
      let record: Name = "r\(Int.random(in: 0..<60, using: &random))"
      let leaf = DigestNode.leaf(of: record)
      if let old = rows[record] { sums.remove(Self.row(record, old), from: leaf) }
      rows[record] =
        random.chance(1, of: 4) ? nil : Int64.random(in: 0..<1_000, using: &random)
      if let new = rows[record] { sums.add(Self.row(record, new), to: leaf) }
    }
    var scratch = DigestSums()
    for (record, value) in rows.shuffled(using: &random) {
      scratch.add(Self.row(record, value), to: DigestNode.leaf(of: record))
    }
    #expect(sums == scratch)
    #expect(sums.recordCount == rows.count)
  }

  @Test("a node's digest is the sum of its children's digests, and node names are read back")
  func nodes() throws {
    var sums = DigestSums()
    for index in 0..<5_000 {
      sums.add(Self.row("r\(index)", 1), to: DigestNode.leaf(of: "r\(index)"))
    }
    for text in ["", "0", "f", "00", "a7", "0a3", "fff"] {
      let node = try #require(DigestNode(text))
      #expect(node.description == text)
      var sum = Digest.zero
      for child in node.children { sum += sums[child] }
      #expect(sum == sums[node], "node \(text)")
    }
    for text in ["0a3f", "0000", "ffff"] { #expect(DigestNode(text)?.isLeaf == true) }
    for text in ["g", "A", "00000", " ", "-1"] { #expect(DigestNode(text) == nil, "\(text)") }
    #expect(DigestNode("0a3f")?.leaves == 0x0A3F...0x0A3F)
    #expect(DigestNode("1")?.leaves == 0x1000...0x1FFF)
  }

  @Test("a digest is read back from its text and its bytes")
  func forms() throws {
    for digest in [Digest.zero, Digest(1), Digest(.max), Self.digest([Column("a", 1)])] {
      #expect(Digest(digest.description) == digest)
      #expect(digest.bytes.withUnsafeBytes { Digest(bytes: $0) } == digest)
      #expect(digest.description.utf8.count == 32)
    }
    #expect(Digest("12") == nil)
    #expect(Digest(String(repeating: "g", count: 32)) == nil)
  }

  static func row(_ record: Name, _ value: Int64) -> Digest {
    digest([Column("v", .integer(value))], of: RecordKey(table: "t", record: record))
  }
}

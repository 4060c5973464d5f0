import FerryProtocol
import FerryTestSupport
import Testing

@Suite(.hangLimit)
struct PredicateCostTests {
  static func predicate(_ text: String) throws -> RecordPredicate {
    try RecordPredicate(text, key: "id")
  }

  @Test("each operator, comparison and value costs, and long values cost more")
  func cost() throws {
    #expect(try Self.predicate("true").cost == 1)
    #expect(try Self.predicate("a = 1").cost == 2)
    #expect(try Self.predicate("a = 1 and b is null").cost == 4)
    #expect(try Self.predicate("a in (1, 2, 3)").cost == 4)
    #expect(try Self.predicate("not a = 1").cost == 3)
    let long = String(repeating: "x", count: 640)
    #expect(try Self.predicate("a = '\(long)'").cost == 12)
  }

  @Test("a predicate that names records by their keys lists them")
  func records() throws {
    #expect(try Self.predicate("id = 'a'").records == ["a"])
    #expect(try Self.predicate("id in ('a', 'b', 1, null)").records == ["a", "b"])
    #expect(try Self.predicate("id = 1").records == [])
    #expect(try Self.predicate("id in ('a', 'b') and x = 1 and id = 'b'").records == ["b"])
    #expect(try Self.predicate("id = 'a' or id = 'b'").records == ["a", "b"])
    for text in [
      "true", "id <> 'a'", "id > 'a'", "x = 'a'", "not id = 'a'", "id = 'a' or x = 1", "id is null",
    ] {
      #expect(try Self.predicate(text).records == nil, "\(text)")
    }
  }

  @Test("a record that a predicate does not name never matches it")
  func sound() throws {
    for text in ["id = 'a'", "id in ('a', 'b') and x = 1", "id = 'a' or id in ('b')", "id = 1"] {
      let predicate = try Self.predicate(text)
      let named = try #require(predicate.records)
      for record in ["a", "b", "c", "1", ""] as [Name] where !named.contains(record) {
        for value in [Value.null, 1, 2] {
          #expect(!predicate.matches(record: record, columns: [Column("x", value)]), "\(text)")
        }
      }
    }
  }
}

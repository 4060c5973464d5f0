import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryCaching

@Suite("Vary (RFC 9111 §4.1)", .hangLimit)
struct VariantTests {
  @Test(
    "variants match if the named fields are equal",
    arguments: [
      ("Accept", ["Accept": "a"], ["Accept": "a"], true),
      ("Accept", ["Accept": "a"], ["Accept": "b"], false),
      ("Accept", ["Accept": "a"], [:], false),
      ("Accept", [:], ["Accept": ""], false),
      ("Accept", [:], [:], true),
      ("Accept", ["Accept": "a", "X": "1"], ["X": "2", "accept": "a"], true),
      ("accept, X", ["Accept": "a", "X": "1"], ["Accept": "a", "X": "2"], false),
      ("X,  Accept", ["Accept": "a", "X": "1"], ["X": "1", "Accept": "a"], true),
      ("Accept", ["Accept": "a, b"], ["Accept": "a", "Accept": "b"], true),
      ("Accept", ["Accept": "a,b"], ["Accept": "a ,  b"], true),
      ("Accept", ["Accept": "a, b"], ["Accept": "b, a"], false),
      ("", ["Accept": "a"], ["Accept": "b"], true),
    ] as [(String, TransportHeaders, TransportHeaders, Bool)])
  func table(vary: String, kept: TransportHeaders, asked: TransportHeaders, expected: Bool) throws {
    let variant = try #require(Variant(of: ["Vary": vary], for: kept))
    #expect(variant.matches(asked) == expected)
  }

  @Test("a variant of * matches nothing")
  func anything() {
    #expect(Variant(of: ["Vary": "*"], for: [:]) == nil)
  }

  @Test("variants contain no credentials")
  func digest() throws {
    let variant = try #require(Variant(of: ["Vary": "Authorization"], for: ["Authorization": "s"]))
    #expect(variant.digest.count == 32 && variant.names == ["authorization"])
  }

  @Test("the newest matching variant is chosen")
  func selection() {
    let heads = [
      CachedHead(["Vary": "A"], id: 1, received: 30, for: ["A": "2"]),
      CachedHead(["Vary": "A"], id: 2, received: 10, for: ["A": "1"]),
      CachedHead([:], id: 3, received: 20),
      CachedHead(["Vary": "A"], id: 4, received: 20, for: ["A": "1"]),
    ]
    #expect(CachePolicy.select(heads, for: ["A": "1"])?.id == 4)
    #expect(CachePolicy.select(heads, for: [:])?.id == 3)
    #expect(CachePolicy.select([heads[0]], for: ["A": "1"]) == nil)
  }
}

import FerryTestSupport
import Testing

@testable import FerryProtocol

@Suite("Short identifiers", .hangLimit)
struct UniqueIDPrefixTests {
  private static let one = id("0198c2f0-1a2b-7000-8000-000000000001")
  private static let two = id("0198c2f0-1a2b-7000-8000-000000000002")
  private static let three = id("0198c2f0-1a2c-7000-8000-000000000001")
  private static let far = id("f198c2f0-1a2b-7000-8000-000000000001")

  private static func id(_ text: String) -> UniqueID {
    guard let id = UniqueID(text) else { preconditionFailure("\(text) is no UUID") }
    return id
  }

  @Test("a beginning contains the identifiers with it, in any case, and no others")
  func contains() throws {
    let prefix = try #require(UniqueIDPrefix("0198C2F0-1A2b"))
    #expect(prefix.contains(Self.one) && prefix.contains(Self.two))
    #expect(!prefix.contains(Self.three) && !prefix.contains(Self.far))
    let whole = try #require(UniqueIDPrefix("\(Self.one)"))
    #expect(whole.contains(Self.one) && !whole.contains(Self.two))
    #expect(whole.first == whole.last)
  }

  @Test(
    "text that begins no identifier is refused",
    arguments: [
      "", "019", "0198c2f01", "0198c2f0x", "-0198", "0198-", "0198c2fä",
      "0198c2f0-1a2b-7000-8000-0000000000011",
    ])
  func refused(_ text: String) {
    #expect(UniqueIDPrefix(text) == nil)
  }

  @Test("a short form is the shortest that is unique, has 8 characters, and ends with a digit")
  func shortest() {
    let short = UniqueIDAbbreviations([Self.one, Self.two, Self.three, Self.far, Self.one])
    #expect(short.text(for: Self.one) == "\(Self.one)")
    #expect(short.text(for: Self.three) == "0198c2f0-1a2c")
    #expect(short.text(for: Self.far) == "f198c2f0")
    let near = Self.id("0198c2f0-2a2b-7000-8000-000000000001")
    #expect(UniqueIDAbbreviations([near, Self.far]).text(for: near) == "0198c2f0")
    let hyphen = UniqueIDAbbreviations([Self.one, Self.id("0198c2f1-0000-7000-8000-000000000000")])
    #expect(hyphen.text(for: Self.one) == "0198c2f0")
    #expect(UniqueIDAbbreviations([Self.one, near]).text(for: near) == "0198c2f0-2")
    #expect(UniqueIDAbbreviations([Self.one, Self.far]).text(for: Self.two).hasSuffix("2"))
    #expect(UniqueIDAbbreviations([]).text(for: Self.one) == "0198c2f0")
  }

  @Test("each of many identifiers is the only one with its short form")
  func unique() throws {
    var random = SeededGenerator(seed: 7)
    let ids = (0..<500).map { number in
      UniqueID(
        timestamp: HybridTimestamp(milliseconds: 1_700_000_000_000 + Int64(number / 50)),
        random: random.next())
    }
    let short = UniqueIDAbbreviations(ids)
    for id in ids {
      let prefix = try #require(UniqueIDPrefix(short.text(for: id)))
      #expect(ids.filter(prefix.contains) == [id])
    }
  }
}

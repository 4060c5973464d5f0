import FerryTestSupport
import Testing

@testable import FerryMirror

@Suite("The names of a group's spaces and mirrors", .hangLimit)
struct SpacePatternTests {
  @Test("a value takes the place of {}")
  func spaces() throws {
    let pattern = try SpacePattern("account-{}.eu")
    #expect(try pattern.space(for: "7") == "account-7.eu")
    #expect(try SpacePattern("{}").space(for: "Ada") == "Ada")
    for value in ["", " ", "a/b", "ü", "a b", String(repeating: "x", count: 64), "..", "-"] {
      #expect(throws: MirrorFault.self, "\(value)") { try SpacePattern("{}").space(for: value) }
    }
  }

  @Test(
    "a pattern without {}, with two of them, or for a name that no space can have is refused",
    arguments: ["account", "", "{}{}", "{}-{}", "a b {}", "-{}", "{}/x"])
  func refused(text: String) {
    #expect(throws: MirrorFault.self) { try SpacePattern(text) }
  }

  @Test("each value has a mirror of its own, whose name can be a mirror's")
  func mirrors() {
    let values = [
      "7", "a", "A", "a_", "_", "0199c82c-0000-7000-8000-0000000000a1", "ü", "a/b", "a b", "..",
      String(repeating: "x", count: 32), String(repeating: "x", count: 33),
      String(repeating: "x", count: 300),
    ]
    let group = String(repeating: "g", count: SpacePattern.groupNameMax)
    let names = values.map { SpacePattern.mirror(of: group, for: $0) }
    #expect(Set(names).count == values.count)
    for name in names { #expect(MirrorConfiguration.isName(name), "\(name)") }
    #expect(SpacePattern.mirror(of: "accounts", for: "7") == "accounts-7")
  }
}

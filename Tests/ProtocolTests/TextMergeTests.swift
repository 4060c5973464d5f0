import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Merging texts by line", .hangLimit)
struct TextMergeTests {
  private func merge(_ original: Value, _ first: Value, _ second: Value) -> Value? {
    let merged = TextMerge.merge(original: original, first, second)
    #expect(merged == TextMerge.merge(original: original, second, first), "whichever comes first")
    return merged
  }

  @Test("changes of different lines are merged")
  func apart() {
    #expect(merge("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n") == "A\nb\nC\n")
    #expect(merge("a\nb\nc\n", "b\nc\n", "a\nb\nc\nd\n") == "b\nc\nd\n")
    #expect(merge("a\nb\nc\nd\ne\n", "a\nc\nd\ne\n", "a\nb\nc\nx\ny\ne\n") == "a\nc\nx\ny\ne\n")
    #expect(
      merge("a\nb\nc", "a\nb\nc\nd", "A\nb\nc") == "A\nb\nc\nd", "the last line without a line feed"
    )
    #expect(merge("é\nb\nc\n", "é\nb\nC\n", "e\u{301}\nb\nc\n") == "e\u{301}\nb\nC\n", "by bytes")
  }

  @Test("changes of the same line or of adjacent lines are not merged")
  func together() {
    #expect(merge("a\nb\nc\n", "a\nB\nc\n", "a\nß\nc\n") == nil)
    #expect(merge("a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n") == nil)
    #expect(merge("a\n", "a\nb\n", "a\nc\n") == nil)
    #expect(merge("a\nb\nc\n", "a\nc\n", "a\nB\nc\n") == nil)
    #expect(merge("", "a\n", "b\n") == nil)
    #expect(merge("one line", "one lime", "two lines") == nil)
  }

  @Test("equal changes of both sides count once, and an unchanged side takes the other's change")
  func same() {
    #expect(merge("a\nb\nc\nd\n", "A\nb\nc\nd\n", "A\nb\nc\nD\n") == "A\nb\nc\nD\n")
    #expect(merge("a\n", "b\n", "b\n") == "b\n")
    #expect(merge("a\n", "a\n", "b\n") == "b\n")
    #expect(merge("a\n", "", "a\n") == "")
    #expect(merge(nil, nil, "b\n") == "b\n")
  }

  @Test("values that are not text are not merged")
  func otherValues() {
    #expect(merge("a\nb\nc\n", .blob([1]), "A\nb\nc\n") == nil)
    #expect(merge(nil, "a\n", "b\n") == nil)
    #expect(merge("a\n", nil, "b\n") == nil)
  }

  @Test("texts that are too large, or need too much work, are not merged")
  func bounds() {
    func text(_ lines: Int, _ change: (Int) -> String? = { _ in nil }) -> Value {
      .text((0..<lines).map { "\(change($0) ?? "line \($0)")\n" }.joined())
    }
    func first(_ lines: Int) -> Value { text(lines) { $0 == 0 ? "x" : nil } }
    let most = TextMerge.linesMax
    #expect(merge(text(most), first(most), text(most) { $0 == 9 ? "y" : nil }) != nil)
    #expect(merge(text(most + 1), first(most + 1), text(most + 1) { $0 == 9 ? "y" : nil }) == nil)
    let edits = TextMerge.editsMax / 2
    let many = text(2_000) { (9..<9 + edits).contains($0) ? "y" : nil }
    #expect(merge(text(2_000), first(2_000), many) != nil)
    let more = text(2_000) { (9..<10 + edits).contains($0) ? "y" : nil }
    #expect(merge(text(2_000), first(2_000), more) == nil)
    let half = String(repeating: "z", count: 600_000)
    #expect(merge("a\nb\nc\n", .text("\(half)\nb\nc\n"), .text("a\nb\n\(half)\n")) == nil)
  }

  @Test(
    "a merge of texts that changed in different parts contains both changes",
    arguments: 1...200 as ClosedRange<UInt64>)
  func property(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    // Two halves around a line touched by neither; lines repeat, so there is choice.
    func half() -> [String] {
      (0..<Int.random(in: 0...6, using: &random)).map { _ in
        ["a", "b", "c"][Int.random(in: 0...2, using: &random)] + "\n"
      }
    }
    func join(_ upper: [String], _ lower: [String]) -> Value {
      .text((upper + ["----\n"] + lower).joined())
    }
    let (upper, lower, otherUpper, otherLower) = (half(), half(), half(), half())
    #expect(
      merge(join(upper, lower), join(otherUpper, lower), join(upper, otherLower))
        == join(otherUpper, otherLower))
  }
}

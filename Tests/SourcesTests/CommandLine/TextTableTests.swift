import FerryCommandLine
import FerryTestSupport
import Testing

@Suite("Tables and plots in text", .hangLimit)
struct TextTableTests {
  @Test(
    "width is counted in terminal columns",
    arguments: [
      ("abc", 3), ("", 0), ("é", 1), ("e\u{301}", 1), ("東京", 4), ("한글", 4), ("🚢", 2), ("👩‍👩‍👧", 2),
      ("🇨🇭", 2), ("❤️", 2), ("❤", 1), ("ﬁ", 1), ("Ａ", 2), ("…", 1), ("\u{200D}", 0), ("─", 1),
    ])
  func widths(text: String, width: Int) {
    #expect(text.displayWidth == width)
  }

  @Test("text is cut between characters and never exceeds the width")
  func truncation() {
    #expect("abcdef".truncated(toWidth: 6, with: .unicode) == "abcdef")
    #expect("abcdef".truncated(toWidth: 5, with: .unicode) == "abcd…")
    #expect("東京都庁".truncated(toWidth: 6, with: .unicode) == "東京…")
    #expect("👩‍👩‍👧👩‍👩‍👧".truncated(toWidth: 3, with: .unicode) == "👩‍👩‍👧…")
    #expect("abc".truncated(toWidth: 1, with: .unicode) == "…")
    #expect("abc".truncated(toWidth: 0, with: .unicode) == "")
  }

  @Test("control characters are spelled out, so that data cannot control the terminal")
  func escaping() {
    #expect("a\u{1B}[2J\r\n\t\u{7}".escapedForTerminal == #"a\u{1B}[2J\r\n\t\u{7}"#)
    #expect("\u{9B}31m\u{202E}abc\u{2066}".escapedForTerminal == #"\u{9B}31m\u{202E}abc\u{2066}"#)
    #expect("a\u{200B}b\u{AD}c\u{E0041}".escapedForTerminal == #"a\u{200B}b\u{AD}c\u{E0041}"#)
    #expect("naïve 東京 👩‍👩‍👧".escapedForTerminal == "naïve 東京 👩‍👩‍👧")
  }

  @Test("numbers are right-aligned, text is left-aligned, and wide characters keep the columns")
  func alignment() {
    var table = TextTable(["name", "count", "share", "mixed"])
    table.append(["Zürich", "7", "1.5%", "1"])
    table.append(["東京", "1,234", "-20%", "x"])
    table.append(["🚢\u{1B}[0m", "", "100%"])
    #expect(table.count == 3)
    #expect(
      table.lines(with: .unicode) == [
        "name         count  share  mixed",
        "───────────  ─────  ─────  ─────",
        "Zürich           7   1.5%  1",
        "東京         1,234   -20%  x",
        #"🚢\u{1B}[0m          100%"#,
      ])
  }

  @Test("the widest columns are cut until the table fits", arguments: [20, 30, 40, 60])
  func fits(width: Int) {
    var table = TextTable(["id", "title", "note"])
    table.append(["1", String(repeating: "long title ", count: 1000), "short note"])
    table.append(["22", "東京東京東京東京東京東京東京東京", "x"])
    let widths = table.lines(width: width, with: .unicode).map(\.displayWidth)
    #expect(widths.allSatisfy { $0 <= width })
    #expect(widths.contains(width))
    #expect(table.lines(width: width, with: .unicode)[2].contains("…"))
  }

  @Test("a column can have its own width and alignment")
  func columns() {
    var table = TextTable([.init("a", .right), .init("b", .left, widthMax: 5)])
    table.append(["x", "1234567"])
    #expect(table.lines(with: .unicode) == ["a  b", "─  ─────", "x  1234…"])
    #expect(TextTable(["a"]).lines(with: .unicode) == ["a", "─"])
  }

  @Test("bars share one scale and are drawn in eighths")
  func bars() {
    let plot = BarPlot([
      .init("push", 100, note: "100/s"), .init("pull", 50, note: "50/s"), .init("idle", 1),
      .init("none", 0), .init("lost", .nan, note: "-"),
    ])
    #expect(
      plot.lines(width: 21, with: .unicode) == [
        "push ██████████ 100/s", "pull █████ 50/s", "idle ▏", "none ", "lost  -",
      ])
    #expect(BarPlot([]).lines(with: .unicode) == [])
  }
}

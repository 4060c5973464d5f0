import FerryTestSupport
import Testing

@testable import FerryCommandLine

@Suite("Characters of the locale", .hangLimit)
struct GlyphsTests {
  @Test(
    "the first variable that is set decides",
    arguments: [
      (["LC_ALL": "C"], Glyphs.ascii), (["LC_ALL": "C", "LANG": "de_DE.UTF-8"], .ascii),
      (["LC_ALL": "", "LC_CTYPE": "POSIX", "LANG": "C.UTF-8"], .ascii), ([:], .unicode),
      (["LANG": "de_DE.ISO-8859-1"], .ascii), (["LANG": "zh_CN.utf8"], .unicode),
      (["LC_ALL": "en_US.UTF-8", "LANG": "C"], .unicode),
    ])
  func locale(environment: [String: String], glyphs: Glyphs) {
    #expect(Glyphs(environment: environment) == glyphs)
  }

  @Test("tables, bars, cut text and messages are drawn in ASCII")
  func ascii() {
    var table = TextTable([.init("a", .right), .init("b", .left, widthMax: 5)])
    table.append(["x", "1234567"])
    #expect(table.lines(with: .ascii) == ["a  b", "-  -----", "x  12..."])
    #expect("abcdef".truncated(toWidth: 2, with: .ascii) == "..")
    let plot = BarPlot([.init("push", 100), .init("pull", 47)])
    #expect(plot.lines(width: 17, with: .ascii) == ["push ###########", "pull #####"])
    let state = ProgressState(label: "import", unit: .items("rows"), completed: 1, total: 2)
    #expect(
      ProgressBar.render(state, width: 40, with: .ascii)
        == "import  ########........   50%  1/2 rows")
    let waiting = ProgressState(label: "sync", unit: .items("rows"))
    #expect(ProgressBar.render(waiting, width: 40, with: .ascii).contains("  |  "))
    #expect("“a–b” → …".drawn(with: .ascii) == "\"a-b\" -> ...")
    #expect("“a–b” → …".drawn(with: .unicode) == "“a–b” → …")
  }
}

import FerryPlatform
import FerryTestSupport
import Testing

/// Texts from outside are compared and cut by their bytes. A mark behind a character of ASCII is one
/// `Character` with it, and so is the line end of two bytes.
@Suite("Texts by their bytes", .hangLimit)
struct ByteTextTests {
  @Test("texts that look alike differ, and beginnings and ends are bytes")
  func comparisons() {
    #expect(!"\u{212A}".isSame(as: "K") && "e\u{301}" == "\u{E9}")
    #expect(!"e\u{301}".isSame(as: "\u{E9}"))
    #expect("s3://\u{301}x".begins(with: "s3://") && "x/\u{301}/".ends(with: "/"))
    #expect("a\"\u{301}b".has("\"") && !"a".has("ab"))
  }

  @Test("a text is cut behind its beginning, and before its end")
  func ends() {
    #expect("s3://\u{301}x".rest(after: "s3://")?.utf8.elementsEqual("\u{301}x".utf8) == true)
    #expect("ab".rest(after: "b") == nil && "ab".rest(after: "ab") == "")
    #expect("x:80".start(before: ":80") == "x" && "80".start(before: ":80") == nil)
    #expect("aé".cut(bytes: 2) == "a" && "aé".cut(bytes: 3) == "aé" && "é".cut(bytes: 1) == "")
    #expect("a".cut(bytes: 9) == "a" && "".cut(bytes: 0) == "")
  }

  @Test("marks of ASCII part a text whatever is behind them")
  func parts() {
    #expect("a=\u{301}b=c".parts(at: "=", most: 2).map { $0.utf8.count } == [1, 5])
    #expect(",a,,b,".words(at: ",") == ["a", "b"] && "".words().isEmpty)
    #expect("a::b:::c".parts(between: "::") == ["a", "b", ":c"])
    #expect("a;\u{301};b".until(";") == "a" && "a".until(";", ",") == "a" && ";".until(";") == "")
    #expect("a\r\nb\n\nc\u{2028}d".lines == ["a", "b", "c\u{2028}d"])
    #expect(" a\t\r\nb\u{A0} ".fields == ["a", "b\u{A0}"])
  }

  @Test("blanks around a text are those of ASCII")
  func trimming() {
    #expect(" \ta b\t ".trimmedBlanks == "a b" && "\r\n".trimmedBlanks == "\r\n")
    #expect(" \r\na\u{A0}\n".trimmedASCII == "a\u{A0}" && " \t".trimmedBlanks.isEmpty)
  }

  @Test("only letters of ASCII change their case")
  func letters() {
    #expect("\u{212A}AZ[É".lowercasedASCII.utf8.elementsEqual("\u{212A}az[É".utf8))
    #expect("ıaz{ß".uppercasedASCII == "ıAZ{ß")
  }
}

import FerryCommandLine
import FerryPlatform
import FerryTestSupport
import Foundation
import Testing

/// Texts from outside in command lines, read by real shells.
@Suite("Quoting for a shell", .hangLimit)
struct ShellQuotingTests {
  private static let shells = ["sh", "bash"]

  /// Returns a shell's words for the words behind `show`.
  private func words(_ line: String, shell: String) async throws -> [String] {
    let directory = try TemporaryDirectory()
    // A script file may contain bytes that no argument can.
    let script = directory.file("script")
    try Data("show() { printf '%s\\0' \"$@\"; }\n\(line)\n".utf8).write(to: script)
    let finished = try await ChildProcess.run(
      URL(filePath: "/usr/bin/env"), [shell, script.path], directory: directory.url)
    #expect(finished.status == .exited(0), "\(line): \(finished.error)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["script"])
    return finished.output.utf8.split(separator: 0, omittingEmptySubsequences: false).dropLast()
      .map { String(decoding: $0, as: UTF8.self) }
  }

  private static let attacks = [
    "-h\u{600}'; touch owned; '", "'\u{301}; touch owned; '\u{301}", "$(touch owned)",
    "`touch owned`", "\\'; touch owned #", "a\n touch owned\n", "a\r\ntouch owned", "!!", "~", "*",
    "\"; touch owned", "a&touch owned&", "\u{600}'", "''", "'", "\\", "",
  ]

  @Test("a shell reads each quoted word byte for byte", arguments: shells)
  func quoted(_ shell: String) async throws {
    var samples = NameSamples(seed: 7)
    let texts = Self.attacks + (0..<300).map { _ in samples.name() }
    let line = "show " + texts.map(\.shellQuoted).joined(separator: " ")
    let read = try await words(line, shell: shell)
    #expect(read.count == texts.count)
    for (read, text) in zip(read, texts) { #expect(read.utf8.elementsEqual(text.utf8), "\(text)") }
  }

  @Test("a suggested command has its texts byte for byte, or none of them", arguments: shells)
  func suggested(_ shell: String) async throws {
    var samples = NameSamples(seed: 8)
    let texts = Self.attacks + (0..<120).map { _ in samples.name() }
    var count = 0
    for text in texts {
      let line = SuggestedCommand.line("show", [text], or: "TABLE")
      #expect(line.escapedForTerminal.isSame(as: line))
      #expect(!line.has("`"))
      let expected =
        line.isSame(as: "show TABLE") ? ["TABLE"] : text.begins(with: "-") ? ["--", text] : [text]
      if expected[0] != "TABLE" { count += 1 }
      let read = try await words(line, shell: shell)
      #expect(read.map { Array($0.utf8) } == expected.map { Array($0.utf8) }, "\(text)")
    }
    #expect(count > 30)
  }

  @Test(
    "a word is quoted only if a shell would change it, and a dash begins no option",
    arguments: [
      ("notes", "c notes"), ("my notes", "c 'my notes'"), ("it's", "c 'it'\\''s'"), ("", "c ''"),
      ("a;b", "c 'a;b'"), ("$HOME", "c '$HOME'"), ("-x", "c -- -x"), ("ä", "c 'ä'"),
      ("v1.2/a-b_c", "c v1.2/a-b_c"), ("a`b", "c NAME"), ("a\u{202E}b", "c NAME"),
      ("a\u{200B}b", "c NAME"), ("a\u{A0}b", "c NAME"), ("a\nb", "c NAME"), ("\u{1B}[2J", "c NAME"),
      ("\u{600}'", "c NAME"), ("\u{E000}", "c NAME"), ("a\u{FE0F}", "c NAME"),
    ])
  func words(_ text: String, _ expected: String) {
    #expect(SuggestedCommand.line("c", [text], or: "NAME") == expected)
  }
}

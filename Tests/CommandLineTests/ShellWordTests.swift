import FerryCommandLine
import FerryTestSupport
import Testing

@Suite("Shell words", .hangLimit)
struct ShellWordTests {
  @Test(
    "a word is quoted only if a shell would change it",
    arguments: [
      ("notes", "notes"), ("my notes", "'my notes'"), ("it's", "'it'\\''s'"), ("", "''"),
      ("a;b", "'a;b'"), ("$HOME", "'$HOME'"), ("-x", "'-x'"), ("ä", "'ä'"),
      ("v1.2/a-b_c", "v1.2/a-b_c"),
    ])
  func quoting(_ word: String, _ expected: String) {
    #expect(word.asShellWord == expected)
  }
}

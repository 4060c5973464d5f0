import Ferry
import FerryTestSupport
import Testing

@testable import FerryCommand

/// Lines typed by a user in `ferry sql`.
@Suite("SQL input", .hangLimit)
struct SQLInputTests {
  private func steps(_ lines: String...) -> [SQLInput.Step] {
    var input = SQLInput()
    return lines.map { input.append($0) { Database.isComplete($0) } }
  }

  @Test("a statement ends with its semicolon, and not with one in a text, comment or trigger")
  func ends() {
    #expect(steps("SELECT 1;") == [.run(sql: "SELECT 1;")])
    #expect(steps("SELECT", "1", ";") == [.read, .read, .run(sql: "SELECT\n1\n;")])
    #expect(
      steps("SELECT ';", "'; -- done") == [.read, .run(sql: "SELECT ';\n'; -- done")])
    #expect(steps("SELECT 1 -- ;", ";") == [.read, .run(sql: "SELECT 1 -- ;\n;")])
    #expect(
      steps("CREATE TRIGGER t AFTER INSERT ON a BEGIN", "DELETE FROM b;", "END;").last
        == .run(sql: "CREATE TRIGGER t AFTER INSERT ON a BEGIN\nDELETE FROM b;\nEND;"))
    #expect(steps("", "  ") == [.read, .read])
  }

  @Test("a full stop begins a command only at the beginning of a statement")
  func commands() {
    #expect(steps(".tables", " .help ") == [.perform(.tables), .perform(.help)])
    #expect(steps(".quit;", ".exit") == [.perform(.leave), .perform(.leave)])
    #expect(steps(".schema") == [.perform(.schema(table: nil))])
    #expect(steps(".schema notes;") == [.perform(.schema(table: "notes"))])
    #expect(steps(".schema 'my notes'") == [.perform(.schema(table: "my notes"))])
    #expect(steps("SELECT", ".5;") == [.read, .run(sql: "SELECT\n.5;")])
    #expect(steps(".tables now") == [.reject(".tables takes no argument")])
    #expect(steps(".x") == [.reject(".x is not a command; .help lists the commands")])
  }

  @Test("the prompt shows whether a statement continues, and a cancellation begins a new one")
  func prompts() {
    var input = SQLInput()
    #expect(input.prompt == SQLInput.prompt)
    _ = input.append("SELECT") { Database.isComplete($0) }
    #expect(input.prompt == SQLInput.continuation)
    input.cancel()
    #expect(input == SQLInput())
  }
}

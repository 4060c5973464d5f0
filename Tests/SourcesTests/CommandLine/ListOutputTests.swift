import FerryCommandLine
import FerryTestSupport
import Synchronization
import Testing

@Suite("Lists that are printed page by page", .hangLimit)
struct ListOutputTests {
  /// The text of a list with pages of so many rows, and the number of pieces.
  private func printed(_ pages: [Int], isJSON: Bool) throws -> (text: String, pieces: Int) {
    let pieces = Mutex([String]())
    let output = TextOutput { text in pieces.withLock { $0.append(text) } }
    var list = ListOutput("rows", ["NAME", "SIZE"], isJSON: isJSON, to: output, width: nil)
    var number = 0
    for count in pages {
      let rows = (0..<count).map { _ -> ListOutput.Row in
        number += 1
        return (["r\(number)", "1"], .object([("name", .string("r\(number)"))]))
      }
      try list.add(rows)
    }
    try list.finish()
    return pieces.withLock { ($0.joined(), $0.count) }
  }

  @Test(
    "JSON is one object, however many pages there are",
    arguments: [[], [0], [3], [1, 2], [2, 0, 1]])
  func json(pages: [Int]) throws {
    let (text, pieces) = try printed(pages, isJSON: true)
    let rows =
      pages.reduce(0, +) == 0 ? "" : (1...3).map { #"{"name":"r\#($0)"}"# }.joined(separator: ",")
    #expect(text == "{\"rows\":[\(rows)]}\n")
    #expect(pieces == pages.count { $0 > 0 } + 1)
  }

  @Test("a list without rows can say so", arguments: [false, true])
  func none(isJSON: Bool) throws {
    let text = Mutex("")
    let output = TextOutput { piece in text.withLock { $0 += piece } }
    var list = ListOutput("rows", ["NAME"], isJSON: isJSON, none: "there are none", to: output)
    try list.finish()
    #expect(text.withLock { $0 } == (isJSON ? "{\"rows\":[]}\n" : "there are none\n"))
  }

  @Test("a table has its titles once", arguments: [[], [0], [3], [1, 2], [2, 0, 1]])
  func table(pages: [Int]) throws {
    let (text, _) = try printed(pages, isJSON: false)
    let (whole, _) = try printed([pages.reduce(0, +)], isJSON: false)
    #expect(text == whole)
    #expect(text.split(separator: "\n").count { $0.contains("NAME") } == 1)
  }
}

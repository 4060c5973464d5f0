import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("The order of new tables", .hangLimit)
struct TableOrderTests {
  private static let cases: [(parents: [Name: [Name]], order: [[Name]])] = [
    ([:], []),
    (["b": [], "a": []], [["a"], ["b"]]),
    (["a": ["b"], "b": ["c"], "c": []], [["c"], ["b"], ["a"]]),
    (["a": ["a", "elsewhere"]], [["a"]]),
    (["a": ["b"], "b": ["a"], "c": ["a"]], [["a", "b", "c"]]),
  ]

  @Test("parents come before their children; tables in a circle are one group", arguments: cases)
  func order(parents: [Name: [Name]], order: [[Name]]) {
    #expect(TableOrder.parentsFirst(Set(parents.keys)) { parents[$0] ?? [] } == order)
  }
}

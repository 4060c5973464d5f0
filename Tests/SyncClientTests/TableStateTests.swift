import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Decisions about changed tables", .hangLimit)
struct TableStateTests {
  @Test(
    "a table's state decides about its triggers, and about the comparison of its rows",
    arguments: [
      (TableState(), .none),
      (TableState(isPresent: false), .absent),
      (TableState(isPresent: false, isAltered: true), .rejected),
      (TableState(isKnown: false), .newColumns),
      (TableState(isRecorded: false), .newColumns),
      (TableState(isAsCreated: false), .compared),
      (TableState(isKnown: false, isAsCreated: false, isRecorded: false), .compared),
      // The statement's triggers were dropped before it: they are no sign of another program.
      (TableState(isAltered: true, isAsCreated: false, isRecorded: false), .newColumns),
    ] as [(TableState, TableState.Consequence)])
  func consequence(state: TableState, expected: TableState.Consequence) {
    #expect(state.consequence == expected)
  }

  private static let step = Suspension(places: ["tasks": .init(locals: ["todo"], root: 7)])

  @Test(
    "a step's writes and drops decide about a suspended table",
    arguments: [
      ("todo", 7, [], [], .newColumns), ("todo", 7, ["other"], ["other"], .newColumns),
      ("todo", 7, ["todo"], [], .compared), ("jobs", 7, ["jobs"], [], .compared),
      ("todo", 8, [], [], .compared), ("todo", 7, [], ["todo"], .compared),
      ("todo", nil, [], ["todo"], .untracked), ("todo", nil, ["todo"], [], .rejected),
    ] as [(Name, Int64?, Set<Name>, Set<Name>, Suspension.Consequence)])
  func afterStep(
    local: Name, root: Int64?, written: Set<Name>, dropped: Set<Name>,
    expected: Suspension.Consequence
  ) {
    #expect(
      Self.step.consequence(
        for: "tasks", local: local, root: root, written: written, dropped: dropped) == expected)
  }
}

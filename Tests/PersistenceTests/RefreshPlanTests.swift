import FerryTestSupport
import Testing

@testable import FerryPersistence

/// When a live query runs again: changes in, runs out.
@Suite("The plan of a live query", .hangLimit)
struct RefreshPlanTests {
  /// Returns a plan that has run once, and read these tables.
  private func plan(reading tables: Set<String>) -> RefreshPlan {
    var plan = RefreshPlan()
    plan.begin()
    let isAgain = plan.end(tables)
    #expect(!isAgain)
    return plan
  }

  @Test(
    "only a change of a table that was read, or an unknown change, begins a run",
    arguments: [
      (ChangedTables.some(["a"]), true), (.some(["b", "c"]), false), (.some(["b", "a"]), true),
      (.unknown, true),
    ])
  func concerned(_ changed: ChangedTables, _ runs: Bool) {
    var plan = plan(reading: ["a"])
    let isBegun = plan.change(changed)
    #expect(isBegun == runs)
  }

  @Test("changes during a run begin no second one, and count as one after it")
  func duringARun() {
    var plan = plan(reading: ["a"])
    plan.begin()
    for _ in 0..<1_000 {
      let runs = plan.change(.some(["a"]))
      #expect(!runs)
    }
    let isAgain = plan.end(["a"])
    #expect(isAgain)
    plan.begin()
    let isThird = plan.end(["a"])
    #expect(!isThird)
  }

  @Test("a change during a run is judged by the tables that this run reads")
  func otherTables() {
    var plan = plan(reading: ["a"])
    plan.begin()
    _ = plan.change(.some(["b"]))
    let isAgain = plan.end(["a", "b"])
    #expect(isAgain)
    plan.begin()
    _ = plan.change(.some(["c"]))
    let isThird = plan.end(["a", "b"])
    #expect(!isThird)
    let isBegun = plan.change(.some(["b"]))
    #expect(isBegun)
  }

  @Test("a change during the first run is not lost")
  func firstRun() {
    var plan = RefreshPlan()
    plan.begin()
    let isBegun = plan.change(.some(["a"]))
    #expect(!isBegun)
    let isAgain = plan.end(["a"])
    #expect(isAgain)
  }

  @Test("changes add up, and an unknown one stays unknown")
  func sum() {
    var changed = ChangedTables.some(["a"])
    changed.add(.some(["b"]))
    #expect(changed == .some(["a", "b"]))
    changed.add(.unknown)
    changed.add(.some(["c"]))
    #expect(changed == .unknown)
  }
}
